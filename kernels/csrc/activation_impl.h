// Packing of activations and the activation function, over a policy.
#pragma once

#include "policy.h"

namespace fiddler {
namespace {

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

// What is beyond the largest bf16 becomes that, so that it cannot turn into NaN (0 times infinity) further on:
// sums that overflowed, and inputs that rounding to bf16 would make infinite. A NaN stays one. Where products are
// rounded on their own they must not overflow either: 1e37 leaves room for weights up to 34, or in quantised
// formats for groups whose magnitudes add up to 34.
template <class P>
FIDDLER_INLINE typename P::Vec finite(typename P::Vec x) {
  constexpr float kLargest = P::kFused ? 3.38953139e38f : 1e37f;
  return P::min(P::set1(kLargest), P::max(P::set1(-kLargest), x));
}

// 16 neurons: silu(gate) * up.
template <class P>
FIDDLER_INLINE typename P::Vec neurons(const float* gate, const float* up) {
  return finite<P>(P::mul(silu<P>(finite<P>(P::load(gate))), finite<P>(P::load(up))));
}

// The 32 inputs of k tile `k` of a row: where they are or, at the ragged end, a copy in `padded` with zeros.
FIDDLER_INLINE const float* tile_inputs(const float* row, std::size_t cols, std::size_t k, float (&padded)[32]) {
  const float* from = row + k * 32;
  if (k * 32 + 32 <= cols) return from;
  std::memset(padded, 0, sizeof(padded));
  std::memcpy(padded, from, (cols - k * 32) * sizeof(float));
  return padded;
}

// How products want their activations.
struct Plain {
  static constexpr bool kSum = false;    // with a tile's 32 inputs goes their sum; sums follow the inputs of all tokens
  static constexpr float kFactor = 1.0f;  // what inputs are multiplied with
  static constexpr std::size_t kTileFloats = 32;
};

// kFactor: products with up to 32 values of up to 128 stay finite, whatever the input, before a scale makes them
// smaller again. Only inputs below 1e-34 lose bits by it.
template <bool kWithSum>
struct ForGroups {
  static constexpr bool kSum = kWithSum;
  static constexpr float kFactor = 1.0f / 4096;
  static constexpr std::size_t kTileFloats = kSum ? 33 : 32;
};

// One token's activations of one k tile, given as two vectors; `tile` is where the tile's begin.
template <class P, class A>
FIDDLER_INLINE void store_tile(typename P::Activation* tile, std::size_t n, std::size_t tokens,
                               typename P::Vec low, typename P::Vec high) {
  if constexpr (!P::kFused || sizeof(typename P::Activation) == 2) {
    low = finite<P>(low);
    high = finite<P>(high);
  }
  if constexpr (A::kFactor != 1.0f) {
    low = P::mul(low, P::set1(A::kFactor));
    high = P::mul(high, P::set1(A::kFactor));
  }
  const std::size_t stride = 2 * tokens;  // from a pair of a token to its next pair
  P::store_pairs(tile + 2 * n, stride, low);
  P::store_pairs(tile + 8 * stride + 2 * n, stride, high);
  if constexpr (A::kSum) tile[16 * stride + n] = P::sum(P::add(low, high));
}

template <class P, class A>
void pack(const float* const* source, std::size_t tokens, std::size_t cols, std::size_t k_tiles, void* x) {
  auto* tile = static_cast<typename P::Activation*>(x);
  for (std::size_t k = 0; k < k_tiles; ++k, tile += tokens * A::kTileFloats) {
    for (std::size_t n = 0; n < tokens; ++n) {
      float padded[32];
      const float* from = tile_inputs(source[n], cols, k, padded);
      store_tile<P, A>(tile, n, tokens, P::load(from), P::load(from + 16));
    }
  }
}

template <class P, class A>
void swiglu(const float* gate_up, std::size_t tokens, void* x) {
  auto* tile = static_cast<typename P::Activation*>(x);
  const std::size_t stride = tokens * 16;
  for (std::size_t n = 0; n < tokens; ++n) {
    const float* gate = gate_up + n * 16;
    store_tile<P, A>(tile, n, tokens, neurons<P>(gate, gate + 2 * stride),
                     neurons<P>(gate + stride, gate + 3 * stride));
  }
}

}  // namespace
}  // namespace fiddler
