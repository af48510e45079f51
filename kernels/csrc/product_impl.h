// Products with bf16 tiles, written once for all instruction sets over a policy (see policy.h).
#pragma once

#include "activation_impl.h"

namespace fiddler {
namespace {

// One register block: R row tiles x N tokens over all k tiles.
template <class P, int R, int N>
FIDDLER_INLINE void block(const Part& part, std::size_t first_row) {
  const Matmul& m = part.m;
  const Operand& o = part.operand;
  using Activation = typename P::Activation;
  typename P::Vec acc[R][N];
  float* c = o.c + first_row * o.c_row_stride;
  FIDDLER_UNROLL
  for (int r = 0; r < R; ++r) {
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) {
      acc[r][n] = m.accumulate ? P::load(c + r * o.c_row_stride + n * o.c_token_stride) : P::zero();
    }
  }
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
  FIDDLER_UNROLL
  for (int r = 0; r < R; ++r) {
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) P::store(c + r * o.c_row_stride + n * o.c_token_stride, acc[r][n]);
  }
}

// All row tiles for N tokens: blocks of the policy's size, then halves of it for what is left.
template <class P, int N, int R = P::rows(N)>
void rows(const Part& part, std::size_t row) {
  for (; row + R <= part.m.w.row_tiles; row += R) block<P, R, N>(part, row);
  if constexpr (R > 1) {
    if (row < part.m.w.row_tiles) rows<P, N, R / 2>(part, row);
  }
}

template <class P, int N = P::kMaxTokens>
void operand_rows(const Part& part) {
  if constexpr (N > 1) {
    if (part.operand.tokens < static_cast<std::size_t>(N)) return operand_rows<P, N - 1>(part);
  }
  rows<P, N>(part, 0);
}

template <class P>
void matmul(const Matmul& m) {
  for (std::size_t i = 0; i < m.count; ++i) operand_rows<P>(part_of(m, i));
}

template <class P>
constexpr Product make_product() {
  static_assert(P::kMaxTokens <= kMaxGroup, "buffers on the stack hold kMaxGroup tokens");
  return {P::kMaxTokens, P::kMaxTokens, 32 * sizeof(typename P::Activation), &pack<P, Plain>, &matmul<P>,
          &swiglu<P, Plain>};
}

}  // namespace
}  // namespace fiddler
