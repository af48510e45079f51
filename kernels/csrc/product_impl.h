// Products with bf16 tiles, written once for all instruction sets over a policy (see policy.h).
#pragma once

#include "activation_impl.h"
#include "blocks_impl.h"

namespace fiddler {
namespace {

// One register block: R row tiles x N tokens over all k tiles.
template <class P, int R, int N>
FIDDLER_INLINE void block(const Part& part, std::size_t first_row) {
  const Matmul& m = part.m;
  const Operand& o = part.operand;
  using Activation = typename P::Activation;
  typename P::Vec acc[R][N];
  load_sums<P>(part, first_row, acc);
  const std::uint8_t* tile = m.w.values + first_row * m.w.row_stride;
  Fetch<R> fetch(part, first_row);
  const Activation* x = static_cast<const Activation*>(o.x);
  for (std::size_t k = 0; k < m.w.k_tiles; ++k) {
    for (int pair = 0; pair < kPairs; ++pair) {
      const std::uint8_t* w = tile + pair * kPairBytes;
      fetch.line(pair);
      FIDDLER_UNROLL
      for (int half = 0; half < P::kHalves; ++half) {
        typename P::Weight weight[R];
        FIDDLER_UNROLL
        for (int r = 0; r < R; ++r) weight[r] = P::weight(w + r * m.w.row_stride, half);
        FIDDLER_UNROLL
        for (int n = 0; n < N; ++n) {
          const typename P::Input input = P::input(x + 2 * n, half);
          FIDDLER_UNROLL
          for (int r = 0; r < R; ++r) acc[r][n] = P::dot(acc[r][n], weight[r], input);
        }
      }
      x += 2 * N;
    }
    tile += m.w.k_stride;
    fetch.next_tiles();
  }
  store_sums<P>(part, first_row, acc);
}

template <class P>
struct PlainBlock {
  static constexpr int kTokens = P::kMaxTokens;
  static constexpr int rows(int n) { return P::rows(n); }
  template <int R, int N>
  static FIDDLER_INLINE void run(const Part& part, std::size_t row) {
    block<P, R, N>(part, row);
  }
};

template <class P>
constexpr Product make_product() {
  static_assert(P::kMaxTokens <= kMaxGroup, "buffers on the stack hold kMaxGroup tokens");
  return {P::kMaxTokens, P::kMaxTokens, 32 * sizeof(typename P::Activation), &pack<P, Plain>,
          &multiply_blocks<PlainBlock<P>>, &swiglu<P, Plain>};
}

}  // namespace
}  // namespace fiddler
