// Products with tiles of 8 and 4 bits for a few tokens, and the expansion of such tiles to bf16, over a policy.
//
// Weights become floats in registers. The scale is applied to the sum over a group, not to each weight; int4's
// minimum is subtracted as minimum x (sum of the group's inputs), which the packed activations carry along.
//
// A sum may overflow to an infinity, but two of different sign must not meet: that would be a NaN from finite
// inputs. So no product becomes an infinity on its own: it is added within one instruction, or small (see finite).
#pragma once

#include <utility>

#include "activation_impl.h"
#include "blocks_impl.h"

namespace fiddler {
namespace {

// Scale and negated minimum of the 16 groups of a tile.
template <class P>
struct Factors {
  typename P::Vec scale;
  typename P::Vec minus_minimum;
};

struct Int8 {
  static constexpr bool kMinimum = false;
  static constexpr int kWords = 8;   // of 16 x 32 bits in a tile
  static constexpr int kInputs = 4;  // of a word

  // Weights of input i of a word.
  template <class P, int i>
  static FIDDLER_INLINE typename P::Vec values(typename P::Words words) {
    return P::template signed_byte<i>(words);
  }
  template <class P>
  static FIDDLER_INLINE Factors<P> factors(const Tiles& w, std::size_t row, std::size_t k) {
    return {P::halves(w.groups + row * w.group_row_stride + k * w.group_k_stride), P::zero()};
  }
};

struct Int4 {
  static constexpr bool kMinimum = true;
  static constexpr int kWords = 4;
  static constexpr int kInputs = 8;

  template <class P, int i>
  static FIDDLER_INLINE typename P::Vec values(typename P::Words words) {
    return P::template nibble<i / 2 + i % 2 * 4>(words);  // even inputs in the low half of a word, odd in the high
  }
  template <class P>
  static FIDDLER_INLINE Factors<P> factors(const Tiles& w, std::size_t row, std::size_t k) {
    const std::uint8_t* group = w.groups + row * w.group_row_stride + k * w.group_k_stride;
    const std::uint8_t* side =
        w.side + row * w.side_row_stride + (w.side_phase + k) / kSideTiles * w.side_k_stride;
    return {P::mul(P::halves(side), P::bytes(group)),
            P::mul(P::mul(P::halves(side + 32), P::bytes(group + 16)), P::set1(-1.0f))};
  }
};

template <class F>
using Inputs = ForGroups<F::kMinimum>;

// sums[r][n] += weights of input i x that input, for the inputs i... of one word of R rows.
template <class P, class F, int R, int N, int... i>
FIDDLER_INLINE void add_word(typename P::Vec (&sums)[R][N], const typename P::Words (&words)[R], const float* x,
                             std::integer_sequence<int, i...>) {
  const auto add_input = [&](auto input) FIDDLER_INLINE_LAMBDA {
    constexpr int index = decltype(input)::value;
    typename P::Vec weight[R];
    FIDDLER_UNROLL
    for (int r = 0; r < R; ++r) weight[r] = F::template values<P, index>(words[r]);
    FIDDLER_UNROLL
    for (int n = 0; n < N; ++n) {
      const typename P::Vec each = P::set1(x[index / 2 * 2 * N + 2 * n + index % 2]);
      FIDDLER_UNROLL
      for (int r = 0; r < R; ++r) sums[r][n] = P::fma(weight[r], each, sums[r][n]);
    }
  };
  (add_input(std::integral_constant<int, i>()), ...);
}

// One register block: R row tiles x N tokens over all k tiles.
template <class P, class F, int R, int N>
FIDDLER_INLINE void quantised_block(const Part& part, std::size_t first_row) {
  const Matmul& m = part.m;
  const Operand& o = part.operand;
  typename P::Vec acc[R][N];
  load_sums<P>(part, first_row, acc);
  const std::uint8_t* tile = m.w.values + first_row * m.w.row_stride;
  Fetch<R> fetch(part, first_row);
  const float* x = static_cast<const float*>(o.x);
  for (std::size_t k = 0; k < m.w.k_tiles; ++k) {
    typename P::Vec sums[R][N];
    FIDDLER_UNROLL
    for (int r = 0; r < R; ++r) {
      FIDDLER_UNROLL
      for (int n = 0; n < N; ++n) sums[r][n] = P::zero();
    }
    for (int word = 0; word < F::kWords; ++word) {
      typename P::Words words[R];
      FIDDLER_UNROLL
      for (int r = 0; r < R; ++r) words[r] = P::load_words(tile + r * m.w.row_stride + word * 64);
      fetch.line(word);
      add_word<P, F, R, N>(sums, words, x, std::make_integer_sequence<int, F::kInputs>());
      x += F::kInputs * N;
    }
    FIDDLER_UNROLL
    for (int r = 0; r < R; ++r) {
      const Factors<P> factors = F::template factors<P>(m.w, first_row + r, k);
      const typename P::Vec inverse = P::set1(1.0f / Inputs<F>::kFactor);
      const typename P::Vec scale = P::mul(factors.scale, inverse);
      const typename P::Vec minus_minimum = F::kMinimum ? P::mul(factors.minus_minimum, inverse) : P::zero();
      FIDDLER_UNROLL
      for (int n = 0; n < N; ++n) {
        acc[r][n] = P::fma(sums[r][n], scale, acc[r][n]);
        if constexpr (F::kMinimum) acc[r][n] = P::fma(minus_minimum, P::set1(x[n]), acc[r][n]);
      }
    }
    if constexpr (F::kMinimum) x += N;
    tile += m.w.k_stride;
    fetch.next_tiles();
  }
  store_sums<P>(part, first_row, acc);
}

template <class P, class F>
struct QuantisedBlock {
  static constexpr int kTokens = kQuantisedTokens;
  static constexpr int rows(int n) { return P::quantised_rows(n); }
  template <int R, int N>
  static FIDDLER_INLINE void run(const Part& part, std::size_t row) {
    quantised_block<P, F, R, N>(part, row);
  }
};

template <class P, class F>
constexpr Product make_quantised_product() {
  return {kQuantisedTokens, kQuantisedTokens, Inputs<F>::kTileFloats * sizeof(float), &pack<P, Inputs<F>>,
          &multiply_blocks<QuantisedBlock<P, F>>, &swiglu<P, Inputs<F>>};
}

template <class P, class F, int... i>
FIDDLER_INLINE void expand_word(typename P::Words words, const Factors<P>& factors, std::uint8_t* out,
                                std::integer_sequence<int, i...>) {
  const auto weight = [&](auto input) FIDDLER_INLINE_LAMBDA {
    const typename P::Vec value = F::template values<P, decltype(input)::value>(words);
    return F::kMinimum ? P::fma(value, factors.scale, factors.minus_minimum) : P::mul(value, factors.scale);
  };
  (P::store_bf16(out + i * kPairBytes, weight(std::integral_constant<int, 2 * i>()),
                 weight(std::integral_constant<int, 2 * i + 1>())),
   ...);
}

template <class P, class F>
void expand(const Tiles& w, std::uint8_t* out) {
  constexpr std::size_t kAhead = 2048;  // bytes: some hundred nanoseconds of expanding
  for (std::size_t r = 0; r < w.row_tiles; ++r) {
    const std::uint8_t* tile = w.values + r * w.row_stride;
    for (std::size_t k = 0; k < w.k_tiles; ++k, tile += w.k_stride) {
      const Factors<P> factors = F::template factors<P>(w, r, k);
      for (int word = 0; word < F::kWords; ++word, out += F::kInputs / 2 * kPairBytes) {
        FIDDLER_PREFETCH(tile + kAhead + word * 64);
        expand_word<P, F>(P::load_words(tile + word * 64), factors, out,
                          std::make_integer_sequence<int, F::kInputs / 2>());
      }
    }
  }
}

}  // namespace
}  // namespace fiddler
