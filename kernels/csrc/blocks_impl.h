// Division of a product into register blocks: some row tiles x some tokens, whose sums stay in registers over all k
// tiles. What a block computes is its own affair.
//
// A block B provides
//   kTokens       the most tokens it takes
//   rows(n)       the most row tiles it takes with n tokens: a power of two
//   run<R, N>(part, row)   R row tiles from `row` on and all N tokens of the part's operand
#pragma once

#include "policy.h"

namespace fiddler {
namespace {

// The sums of a block before its first k tile: zeros, or what c holds.
template <class P, int R, int N>
FIDDLER_INLINE void load_sums(const Part& part, std::size_t row, typename P::Vec (&sums)[R][N]) {
  const Operand& o = part.operand;
  const float* c = o.c + row * o.c_row_stride;
  FIDDLER_UNROLL
  for (int r = 0; r < R; ++r) {
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) {
      sums[r][n] = part.m.accumulate ? P::load(c + r * o.c_row_stride + n * o.c_token_stride) : P::zero();
    }
  }
}

template <class P, int R, int N>
FIDDLER_INLINE void store_sums(const Part& part, std::size_t row, const typename P::Vec (&sums)[R][N]) {
  const Operand& o = part.operand;
  float* c = o.c + row * o.c_row_stride;
  FIDDLER_UNROLL
  for (int r = 0; r < R; ++r) {
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) P::store(c + r * o.c_row_stride + n * o.c_token_stride, sums[r][n]);
  }
}

// Row tiles from `row` on, in blocks of R and the rest in smaller ones.
template <class B, int N, int R = B::rows(N)>
void multiply_rows(const Part& part, std::size_t row) {
  for (; row + R <= part.m.w.row_tiles; row += R) B::template run<R, N>(part, row);
  if constexpr (R > 1) {
    if (row < part.m.w.row_tiles) multiply_rows<B, N, R / 2>(part, row);
  }
}

template <class B, int N = B::kTokens>
void multiply_operand(const Part& part) {
  if constexpr (N > 1) {
    if (part.operand.tokens < static_cast<std::size_t>(N)) return multiply_operand<B, N - 1>(part);
  }
  multiply_rows<B, N>(part, 0);
}

template <class B>
void multiply_blocks(const Matmul& m) {
  for (std::size_t i = 0; i < m.count; ++i) multiply_operand<B>(part_of(m, i));
}

}  // namespace
}  // namespace fiddler
