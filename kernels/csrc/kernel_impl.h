// The kernels, written once for all instruction sets over a policy of vector operations.
//
// Everything is in an unnamed namespace, so that each source that includes this file gets its own copies,
// compiled with its own flags (see kernel.h).
//
// A policy P provides
//   Vec            16 floats; zero, load, store, set1, add, mul, fma(a, b, c) = a * b + c, div, round,
//                  max, min (the second argument where one is NaN), zero_below(v, x, limit) = 0 where
//                  x < limit, else v; exp2i(n) = 2^n for whole n from -126 to 127; sum, a float
//   Activation     the stored type of an activation
//   kHalves        in how many steps a pair of inputs is multiplied: 2 (even, then odd) or 1 (dot product)
//   Weight weight(tile_pair, half), Input input(pair, half), dot(acc, weight, input)
//   store_pairs    16 floats as 8 pairs of activations with a stride
//   kMaxTokens, rows(n): tiles that a register block of n tokens takes at once
#pragma once

#include <cstring>

#include "kernel.h"

#if defined(__GNUC__)
#define FIDDLER_INLINE inline __attribute__((always_inline))
#define FIDDLER_UNROLL _Pragma("GCC unroll 16")
#define FIDDLER_PREFETCH(address) __builtin_prefetch(address, 0, 3)
#else
#define FIDDLER_INLINE inline
#define FIDDLER_UNROLL
#define FIDDLER_PREFETCH(address) ((void)(address))
#endif

namespace fiddler {
namespace {

constexpr int kPairs = 16;          // pairs of inputs in a tile
constexpr int kPairBytes = 64;      // one pair of all 16 rows: a cache line
constexpr int kTileSize = 1024;

// One register block: R row tiles x N tokens over all k tiles.
template <class P, int R, int N>
FIDDLER_INLINE void block(const Matmul& m, std::size_t first_row) {
  using Activation = typename P::Activation;
  typename P::Vec acc[R][N];
  float* c = m.c + first_row * m.c_row_stride;
  FIDDLER_UNROLL
  for (int r = 0; r < R; ++r) {
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) {
      acc[r][n] = m.accumulate ? P::load(c + r * m.c_row_stride + n * m.c_token_stride) : P::zero();
    }
  }
  const std::uint8_t* tile = m.tiles + first_row * m.row_stride;
  const Activation* x = static_cast<const Activation*>(m.x);
  // The tile that is needed next: further along these rows, or, where rows are a single tile, the next rows.
  const std::size_t ahead = m.k_tiles > 1 ? m.k_stride : R * m.row_stride;
  for (std::size_t k = 0; k < m.k_tiles; ++k) {
    for (int pair = 0; pair < kPairs; ++pair) {
      const std::uint8_t* w = tile + pair * kPairBytes;
      FIDDLER_UNROLL
      for (int r = 0; r < R; ++r) FIDDLER_PREFETCH(w + r * m.row_stride + ahead);
      FIDDLER_UNROLL
      for (int half = 0; half < P::kHalves; ++half) {
        typename P::Weight weight[R];
        FIDDLER_UNROLL
        for (int r = 0; r < R; ++r) weight[r] = P::weight(w + r * m.row_stride, half);
        FIDDLER_UNROLL
        for (int n = 0; n < N; ++n) {
          const typename P::Input input = P::input(x + 2 * n, half);
          FIDDLER_UNROLL
          for (int r = 0; r < R; ++r) acc[r][n] = P::dot(acc[r][n], weight[r], input);
        }
      }
      x += 2 * N;
    }
    tile += m.k_stride;
  }
  FIDDLER_UNROLL
  for (int r = 0; r < R; ++r) {
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) P::store(c + r * m.c_row_stride + n * m.c_token_stride, acc[r][n]);
  }
}

// All row tiles for N tokens: blocks of the policy's size, then halves of it for what is left.
template <class P, int N, int R = P::rows(N)>
void rows(const Matmul& m, std::size_t row) {
  for (; row + R <= m.row_tiles; row += R) block<P, R, N>(m, row);
  if constexpr (R > 1) {
    if (row < m.row_tiles) rows<P, N, R / 2>(m, row);
  }
}

template <class P, int N = P::kMaxTokens>
void matmul(const Matmul& m) {
  if constexpr (N > 1) {
    if (m.tokens < static_cast<std::size_t>(N)) return matmul<P, N - 1>(m);
  }
  rows<P, N>(m, 0);
}

template <class P>
void pack(const float* const* source, std::size_t tokens, std::size_t cols, std::size_t k_tiles, void* x) {
  auto* out = static_cast<typename P::Activation*>(x);
  const std::size_t stride = 2 * tokens;  // from a pair of a token to its next pair
  for (std::size_t n = 0; n < tokens; ++n) {
    const float* row = source[n];
    auto* to = out + 2 * n;
    std::size_t col = 0;
    for (; col + 16 <= cols; col += 16, to += 8 * stride) P::store_pairs(to, stride, P::load(row + col));
    for (; col < k_tiles * 32; col += 16, to += 8 * stride) {  // the ragged end, and the padding
      float padded[16] = {};
      for (std::size_t i = 0; i < 16 && col + i < cols; ++i) padded[i] = row[col + i];
      P::store_pairs(to, stride, P::load(padded));
    }
  }
}

// exp(x) for |x| <= 87: 2^n times a polynomial on [-ln2/2, ln2/2]. Cephes' expf coefficients; relative error
// below 2e-7.
template <class P>
FIDDLER_INLINE typename P::Vec exp_small(typename P::Vec x) {
  const auto n = P::round(P::mul(x, P::set1(1.44269504088896341f)));
  // ln 2 in two parts, so that the reduction is exact although n * ln2 has more than 24 bits.
  auto r = P::fma(n, P::set1(-0.693359375f), x);
  r = P::fma(n, P::set1(2.12194440e-4f), r);
  auto p = P::set1(1.9875691500e-4f);
  p = P::fma(p, r, P::set1(1.3981999507e-3f));
  p = P::fma(p, r, P::set1(8.3334519073e-3f));
  p = P::fma(p, r, P::set1(4.1665795894e-2f));
  p = P::fma(p, r, P::set1(1.6666665459e-1f));
  p = P::fma(p, r, P::set1(5.0000001201e-1f));
  const auto one = P::set1(1.0f);
  p = P::add(P::fma(p, P::mul(r, r), r), one);
  return P::mul(p, P::exp2i(n));
}

// silu(x) = x / (1 + exp(-x)); 0 below -87, where the true value is under 1e-36 (and exp would overflow).
template <class P>
FIDDLER_INLINE typename P::Vec silu(typename P::Vec x) {
  const auto clamped = P::min(P::set1(87.0f), P::max(P::set1(-87.0f), x));
  const auto e = exp_small<P>(P::mul(clamped, P::set1(-1.0f)));
  return P::zero_below(P::div(x, P::add(P::set1(1.0f), e)), x, -87.0f);
}

// Sums that overflowed become the largest bf16, so that they cannot turn into NaN (0 times infinity) further
// on; a NaN stays one.
template <class P>
FIDDLER_INLINE typename P::Vec finite(typename P::Vec x) {
  constexpr float kLargest = 3.38953139e38f;
  return P::min(P::set1(kLargest), P::max(P::set1(-kLargest), x));
}

// 16 neurons: silu(gate) * up.
template <class P>
FIDDLER_INLINE typename P::Vec neurons(const float* gate, const float* up) {
  return finite<P>(P::mul(silu<P>(finite<P>(P::load(gate))), finite<P>(P::load(up))));
}

template <class P>
void swiglu(const float* gate_up, std::size_t tokens, void* x) {
  auto* out = static_cast<typename P::Activation*>(x);
  const std::size_t stride = 2 * tokens;
  for (std::size_t tile = 0; tile < 2; ++tile) {
    for (std::size_t n = 0; n < tokens; ++n) {
      const float* gate = gate_up + (tile * tokens + n) * 16;
      P::store_pairs(out + tile * 8 * stride + 2 * n, stride, neurons<P>(gate, gate + 2 * tokens * 16));
    }
  }
}

// Inputs that are no multiple of 16 end in a plain loop: head sizes are 64 or 128 in practice.
template <class P>
void attend(const Attend& a) {
  alignas(64) float weights[kMaxKeys];
  const std::size_t whole = a.head_dim / 16 * 16;
  for (std::size_t q = 0; q < a.query_count; ++q) {
    const float* query = a.queries + q * a.head_dim;
    float* out = a.out + q * (a.head_dim + 2);
    float greatest = -3.0e38f;
    for (std::size_t i = 0; i < a.key_count; ++i) {
      const float* key = a.keys + i * a.head_dim;
      auto sum = P::zero();
      for (std::size_t d = 0; d < whole; d += 16) {
        if (q == 0) FIDDLER_PREFETCH(a.values + i * a.head_dim + d);
        sum = P::fma(P::load(query + d), P::load(key + d), sum);
      }
      float score = P::sum(sum);
      for (std::size_t d = whole; d < a.head_dim; ++d) score += query[d] * key[d];
      score *= a.scale;
      weights[i] = score;
      greatest = score > greatest ? score : greatest;
    }
    auto total = P::zero();
    for (std::size_t i = 0; i < a.key_count; i += 16) {
      for (std::size_t pad = a.key_count; pad < i + 16; ++pad) weights[pad] = -3.0e38f;
      const auto x = P::add(P::load(weights + i), P::set1(-greatest));
      const auto w = P::zero_below(exp_small<P>(P::max(P::set1(-87.0f), x)), x, -87.0f);
      P::store(weights + i, w);
      total = P::add(total, w);
    }
    for (std::size_t d = 0; d < whole; d += 16) {
      auto sum = P::zero();
      for (std::size_t i = 0; i < a.key_count; ++i) {
        sum = P::fma(P::set1(weights[i]), P::load(a.values + i * a.head_dim + d), sum);
      }
      P::store(out + d, sum);
    }
    for (std::size_t d = whole; d < a.head_dim; ++d) {
      out[d] = 0.0f;
      for (std::size_t i = 0; i < a.key_count; ++i) out[d] += weights[i] * a.values[i * a.head_dim + d];
    }
    out[a.head_dim] = P::sum(total);
    out[a.head_dim + 1] = greatest;
  }
}

template <class P>
constexpr Kernels make_kernels() {
  static_assert(P::kMaxTokens <= kMaxGroup, "buffers on the stack hold kMaxGroup tokens");
  return {P::kMaxTokens, sizeof(typename P::Activation), &pack<P>, &matmul<P>, &swiglu<P>, &attend<P>};
}

}  // namespace
}  // namespace fiddler
