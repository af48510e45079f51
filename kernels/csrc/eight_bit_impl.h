// Products of tiles of 8 and 4 bits with activations rounded to 8 bits, over a policy: sums of a group are whole
// numbers, exact, four products an instruction.
//
// The 32 activations of a token in a k tile share a scale, a 127th of the largest: an error of about half a
// percent. A tile's activations are [8 words][tokens][4 bytes], then a scale for each token, then what corrects its
// sums: for int4 the sum of its whole numbers, which the minimum is multiplied with; for int8 the whole number that
// a policy with kBias starts from. The scale comes last, within an addition: nothing overflows before.
//
// Beside policy.h's operations a policy provides
//   Ints           16 whole numbers; no_ints, set1_ints, floats
//   largest        the largest magnitude in a vector, a float
//   whole_bytes    16 floats as whole bytes; in an octet's order (see layout.h) for int4
//   low_nibbles, high_nibbles   the nibbles 0, 2, 4, 6 and 1, 3, 5, 7 of each word, as bytes
//   dot_nibbles(ints, nibbles, x), dot_signed(ints, words, x)   add four products of bytes to each lane. With
//                  kBias the latter adds 128 x the sum of x, too. What the former adds up over a group may be
//                  in another form than Ints': nibble_floats restores it
//   eight_bit_rows(n), kEightBitTokens: as rows(n), kMaxTokens
#pragma once

#include "quantised_impl.h"

namespace fiddler {
namespace {

constexpr std::size_t kTokenTileBytes = 32 + 2 * sizeof(float);  // of one token's activations of a k tile

// 16 whole numbers as bytes, in words of four.
template <class P, class F>
FIDDLER_INLINE void store_words(std::uint8_t* to, std::size_t stride, typename P::Vec whole) {
  std::uint8_t bytes[16];
  P::whole_bytes(bytes, whole, F::kMinimum);
  FIDDLER_UNROLL
  for (int i = 0; i < 4; ++i) std::memcpy(to + i * stride, bytes + 4 * i, 4);
}

// Four bytes to all lanes.
template <class P>
FIDDLER_INLINE typename P::Words broadcast(const std::uint8_t* p) {
  std::int32_t four;
  std::memcpy(&four, p, 4);
  return P::set1_ints(four);
}

template <class P, class F>
FIDDLER_INLINE void store_eight_bit(std::uint8_t* tile, std::size_t n, std::size_t tokens, typename P::Vec low,
                                    typename P::Vec high) {
  // Below the smallest normal number the reciprocal would be infinite: denormals are flushed.
  const float a = P::largest(low), b = P::largest(high);
  const float largest = a > b ? a : b;
  const float inverse = largest > 1e-36f ? 127.0f / largest : 0.0f;
  const typename P::Vec low_whole = P::round(P::mul(low, P::set1(inverse)));
  const typename P::Vec high_whole = P::round(P::mul(high, P::set1(inverse)));
  const std::size_t stride = 4 * tokens;
  store_words<P, F>(tile + 4 * n, stride, low_whole);
  store_words<P, F>(tile + 4 * stride + 4 * n, stride, high_whole);
  // Zero, but NaN where an activation is not finite: that must not be hidden.
  const float checked = P::sum(P::add(P::mul(low, P::set1(0.0f)), P::mul(high, P::set1(0.0f))));
  const float scale = (inverse > 0.0f ? largest / 127.0f : 0.0f) + checked;
  const float sum = P::sum(P::add(low_whole, high_whole));
  auto* scales = reinterpret_cast<float*>(tile + 8 * stride);
  scales[n] = scale;
  if constexpr (F::kMinimum) {
    scales[tokens + n] = sum;
  } else {
    const auto bias = static_cast<std::int32_t>(checked == 0.0f ? -128.0f * sum : 0.0f);  // no number: no matter
    std::memcpy(scales + tokens + n, &bias, sizeof(bias));
  }
}

template <class P, class F>
void eight_bit_pack(const float* const* source, std::size_t tokens, std::size_t cols, std::size_t k_tiles,
                    void* x) {
  auto* tile = static_cast<std::uint8_t*>(x);
  for (std::size_t k = 0; k < k_tiles; ++k, tile += tokens * kTokenTileBytes) {
    for (std::size_t n = 0; n < tokens; ++n) {
      float padded[32];
      const float* from = tile_inputs(source[n], cols, k, padded);
      store_eight_bit<P, F>(tile, n, tokens, P::load(from), P::load(from + 16));
    }
  }
}

template <class P, class F>
void eight_bit_swiglu(const float* gate_up, std::size_t tokens, void* x) {
  const std::size_t stride = tokens * 16;
  for (std::size_t n = 0; n < tokens; ++n) {
    const float* gate = gate_up + n * 16;
    store_eight_bit<P, F>(static_cast<std::uint8_t*>(x), n, tokens, neurons<P>(gate, gate + 2 * stride),
                          neurons<P>(gate + stride, gate + 3 * stride));
  }
}

// The sums of a k tile: sums[r][n] += tile row r x token n.
template <class P, class F, int R, int N>
FIDDLER_INLINE void add_tile(typename P::Ints (&sums)[R][N], const std::uint8_t* tile, std::size_t row_stride,
                             const std::uint8_t* x, const Fetch<R>& fetch) {
  for (int word = 0; word < F::kWords; ++word) {
    typename P::Words words[R];
    FIDDLER_UNROLL
    for (int r = 0; r < R; ++r) words[r] = P::load_words(tile + r * row_stride + word * 64);
    fetch.line(word);
    if constexpr (F::kMinimum) {
      typename P::Words low[R], high[R];
      FIDDLER_UNROLL
      for (int r = 0; r < R; ++r) {
        low[r] = P::low_nibbles(words[r]);
        high[r] = P::high_nibbles(words[r]);
      }
      FIDDLER_UNROLL
      for (int n = 0; n < N; ++n) {
        const typename P::Words first = broadcast<P>(x + 4 * n), second = broadcast<P>(x + 4 * (N + n));
        FIDDLER_UNROLL
        for (int r = 0; r < R; ++r) {
          sums[r][n] = P::dot_nibbles(sums[r][n], low[r], first);
          sums[r][n] = P::dot_nibbles(sums[r][n], high[r], second);
        }
      }
      x += 8 * N;
    } else {
      FIDDLER_UNROLL
      for (int n = 0; n < N; ++n) {
        const typename P::Words each = broadcast<P>(x + 4 * n);
        FIDDLER_UNROLL
        for (int r = 0; r < R; ++r) sums[r][n] = P::dot_signed(sums[r][n], words[r], each);
      }
      x += 4 * N;
    }
  }
}

// One register block: R row tiles x N tokens over all k tiles.
template <class P, class F, int R, int N>
FIDDLER_INLINE void eight_bit_block(const Part& part, std::size_t first_row) {
  const Matmul& m = part.m;
  const Operand& o = part.operand;
  typename P::Vec acc[R][N];
  load_sums<P>(part, first_row, acc);
  const std::uint8_t* tile = m.w.values + first_row * m.w.row_stride;
  const auto* x = static_cast<const std::uint8_t*>(o.x);
  Fetch<R> fetch(part, first_row);
  for (std::size_t k = 0; k < m.w.k_tiles; ++k) {
    float scales[2 * N];  // and corrections
    std::memcpy(scales, x + 32 * N, sizeof(scales));
    typename P::Ints sums[R][N];
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) {
      std::int32_t bias;
      std::memcpy(&bias, scales + N + n, sizeof(bias));
      FIDDLER_UNROLL
      for (int r = 0; r < R; ++r) {
        sums[r][n] = P::kBias && !F::kMinimum ? P::set1_ints(bias) : P::no_ints();
      }
    }
    add_tile<P, F, R, N>(sums, tile, m.w.row_stride, x, fetch);
    FIDDLER_UNROLL
    for (int r = 0; r < R; ++r) {
      const Factors<P> factors = F::template factors<P>(m.w, first_row + r, k);
      FIDDLER_UNROLL
      for (int n = 0; n < N; ++n) {
        typename P::Vec sum = F::kMinimum ? P::nibble_floats(sums[r][n]) : P::floats(sums[r][n]);
        if constexpr (F::kMinimum) {
          sum = P::fma(sum, factors.scale, P::mul(factors.minus_minimum, P::set1(scales[N + n])));
        } else {
          sum = P::mul(sum, factors.scale);
        }
        acc[r][n] = P::fma(sum, P::set1(scales[n]), acc[r][n]);
      }
    }
    x += N * kTokenTileBytes;
    tile += m.w.k_stride;
    fetch.next_tiles();
  }
  store_sums<P>(part, first_row, acc);
}

template <class P, class F>
struct EightBitBlock {
  static constexpr int kTokens = P::kEightBitTokens;
  static constexpr int rows(int n) { return P::eight_bit_rows(n); }
  template <int R, int N>
  static FIDDLER_INLINE void run(const Part& part, std::size_t row) {
    eight_bit_block<P, F, R, N>(part, row);
  }
};

template <class P, class F>
constexpr Product make_eight_bit_product() {
  return {P::kEightBitTokens, P::kEightBitTokens, kTokenTileBytes, &eight_bit_pack<P, F>,
          &multiply_blocks<EightBitBlock<P, F>>, &eight_bit_swiglu<P, F>};
}

}  // namespace
}  // namespace fiddler
