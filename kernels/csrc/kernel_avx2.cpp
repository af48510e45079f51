// The kernels for AVX2, FMA and F16C: a vector of 16 is two registers.
#include <immintrin.h>

#include "attend_impl.h"
#include "eight_bit_impl.h"
#include "product_impl.h"

namespace fiddler {
namespace {

struct Avx2 {
  struct Vec {
    __m256 a, b;
  };
  using Weight = Vec;
  using Input = __m256;
  using Activation = float;
  static constexpr bool kFused = true;
  static constexpr int kHalves = 2;
  static constexpr int kMaxTokens = 6;  // 12 accumulators, 2 weights and 1 input of 16 registers
  static constexpr int rows(int n) { return n == 1 ? 4 : n <= 3 ? 2 : 1; }

  static FIDDLER_INLINE Vec zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
  static FIDDLER_INLINE Vec set1(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
  static FIDDLER_INLINE Vec load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
  static FIDDLER_INLINE void store(float* p, Vec v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
  }
  static FIDDLER_INLINE Vec add(Vec x, Vec y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
  static FIDDLER_INLINE Vec mul(Vec x, Vec y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
  static FIDDLER_INLINE Vec div(Vec x, Vec y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static FIDDLER_INLINE Vec max(Vec x, Vec y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static FIDDLER_INLINE Vec min(Vec x, Vec y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
  static FIDDLER_INLINE Vec fma(Vec x, Vec y, Vec z) {
    return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
  }
  static FIDDLER_INLINE Vec zero_below(Vec v, Vec x, float limit) {
    const __m256 least = _mm256_set1_ps(limit);
    return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, least, _CMP_LT_OQ), v.a),
            _mm256_andnot_ps(_mm256_cmp_ps(x.b, least, _CMP_LT_OQ), v.b)};
  }
  static FIDDLER_INLINE Vec round(Vec x) { return {round1(x.a), round1(x.b)}; }
  static FIDDLER_INLINE Vec exp2i(Vec n) { return {exp2i1(n.a), exp2i1(n.b)}; }
  static FIDDLER_INLINE float sum(Vec x) {
    const __m256 eight = _mm256_add_ps(x.a, x.b);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
  }
  static FIDDLER_INLINE __m256 round1(__m256 x) {
    return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static FIDDLER_INLINE __m256 exp2i1(__m256 n) {
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
  }

  static FIDDLER_INLINE __m256 weight1(const std::uint8_t* p, int half) {
    const __m256i both = _mm256_load_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_castsi256_ps(half == 0 ? _mm256_slli_epi32(both, 16)
                                         : _mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xffff0000))));
  }
  static FIDDLER_INLINE Weight weight(const std::uint8_t* pair, int half) {
    return {weight1(pair, half), weight1(pair + 32, half)};
  }
  static FIDDLER_INLINE Input input(const float* pair, int half) { return _mm256_broadcast_ss(pair + half); }
  static FIDDLER_INLINE Vec dot(Vec acc, Weight w, Input x) {
    return {_mm256_fmadd_ps(w.a, x, acc.a), _mm256_fmadd_ps(w.b, x, acc.b)};
  }
  static FIDDLER_INLINE void store_pairs(float* to, std::size_t stride, Vec v) {
    alignas(32) float values[16];
    store(values, v);
    FIDDLER_UNROLL
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * stride, values + 2 * i, 8);
  }

  struct Words {
    __m256i a, b;
  };
  static constexpr int quantised_rows(int n) { return n == 1 ? 2 : 1; }  // sums of a group and of all groups

  static FIDDLER_INLINE Words load_words(const std::uint8_t* p) {
    return {_mm256_load_si256(reinterpret_cast<const __m256i*>(p)),
            _mm256_load_si256(reinterpret_cast<const __m256i*>(p + 32))};
  }
  template <int i>
  static FIDDLER_INLINE __m256 signed_byte1(__m256i words) {
    return _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(words, 24 - 8 * i), 24));
  }
  template <int i>
  static FIDDLER_INLINE Vec signed_byte(Words words) {
    return {signed_byte1<i>(words.a), signed_byte1<i>(words.b)};
  }
  template <int i>
  static FIDDLER_INLINE __m256 nibble1(__m256i words) {
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(words, 4 * i), _mm256_set1_epi32(15)));
  }
  template <int i>
  static FIDDLER_INLINE Vec nibble(Words words) {
    return {nibble1<i>(words.a), nibble1<i>(words.b)};
  }
  static FIDDLER_INLINE Vec halves(const std::uint8_t* p) { return {halves1(p), halves1(p + 16)}; }
  static FIDDLER_INLINE __m256 halves1(const std::uint8_t* p) {
    return _mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static FIDDLER_INLINE Vec bytes(const std::uint8_t* p) { return {bytes1(p), bytes1(p + 8)}; }
  static FIDDLER_INLINE __m256 bytes1(const std::uint8_t* p) {
    return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))));
  }
  static FIDDLER_INLINE void store_bf16(std::uint8_t* p, Vec even, Vec odd) {
    store_bf16_1(p, even.a, odd.a);
    store_bf16_1(p + 32, even.b, odd.b);
  }
  static FIDDLER_INLINE void store_bf16_1(std::uint8_t* p, __m256 even, __m256 odd) {
    const __m256i half = _mm256_set1_epi32(0x8000);  // rounds to nearest, ties away from zero
    const __m256i low = _mm256_srli_epi32(_mm256_add_epi32(_mm256_castps_si256(even), half), 16);
    const __m256i high = _mm256_add_epi32(_mm256_castps_si256(odd), half);
    _mm256_store_si256(reinterpret_cast<__m256i*>(p), _mm256_blend_epi16(low, high, 0xaa));
  }

  using Ints = Words;
  static constexpr bool kBias = false;
  static constexpr int kEightBitTokens = 4;
  static constexpr int eight_bit_rows(int n) { return n == 1 ? 2 : 1; }

  static FIDDLER_INLINE Ints no_ints() { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static FIDDLER_INLINE Ints set1_ints(std::int32_t v) { return {_mm256_set1_epi32(v), _mm256_set1_epi32(v)}; }
  static FIDDLER_INLINE Vec floats(Ints x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
  static FIDDLER_INLINE float largest(Vec x) {
    const __m256 magnitude = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fffffff));
    const __m256 eight = _mm256_max_ps(_mm256_and_ps(x.a, magnitude), _mm256_and_ps(x.b, magnitude));
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
  }
  static FIDDLER_INLINE void whole_bytes(std::uint8_t (&to)[16], Vec v, bool octets) {
    const __m256i sixteen = _mm256_packs_epi32(_mm256_cvtps_epi32(v.a), _mm256_cvtps_epi32(v.b));
    const __m256i ordered = _mm256_permute4x64_epi64(sixteen, 0xd8);
    __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    if (octets) {  // the order in which the nibbles of a word are taken as bytes, see low_nibbles
      bytes = _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
  static FIDDLER_INLINE Words low_nibbles(Words words) {
    const __m256i mask = _mm256_set1_epi8(15);
    return {_mm256_and_si256(words.a, mask), _mm256_and_si256(words.b, mask)};
  }
  static FIDDLER_INLINE Words high_nibbles(Words words) {
    return low_nibbles({_mm256_srli_epi32(words.a, 4), _mm256_srli_epi32(words.b, 4)});
  }
  // Products of bytes are added in 16 bits, two in each half of a lane: 2 x 128 x 127 fits, and for nibbles the sum
  // over a group, 8 x 2 x 15 x 127, so that these are widened only once.
  static FIDDLER_INLINE __m256i widen1(__m256i pairs) { return _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)); }
  static FIDDLER_INLINE __m256i dot1(__m256i ints, __m256i magnitudes, __m256i x) {
    return _mm256_add_epi32(ints, widen1(_mm256_maddubs_epi16(magnitudes, x)));
  }
  static FIDDLER_INLINE Ints dot_nibbles(Ints pairs, Words nibbles, Words x) {
    return {_mm256_add_epi16(pairs.a, _mm256_maddubs_epi16(nibbles.a, x.a)),
            _mm256_add_epi16(pairs.b, _mm256_maddubs_epi16(nibbles.b, x.b))};
  }
  static FIDDLER_INLINE Vec nibble_floats(Ints pairs) { return floats({widen1(pairs.a), widen1(pairs.b)}); }
  static FIDDLER_INLINE Ints dot_signed(Ints ints, Words words, Words x) {
    return {dot1(ints.a, _mm256_abs_epi8(words.a), _mm256_sign_epi8(x.a, words.a)),
            dot1(ints.b, _mm256_abs_epi8(words.b), _mm256_sign_epi8(x.b, words.b))};
  }
};

constexpr Product kBf16 = make_product<Avx2>();
constexpr Product kInt8 = make_quantised_product<Avx2, Int8>();
constexpr Product kInt4 = make_quantised_product<Avx2, Int4>();
constexpr Product kEightBitInt8 = make_eight_bit_product<Avx2, Int8>();
constexpr Product kEightBitInt4 = make_eight_bit_product<Avx2, Int4>();

}  // namespace

const Kernels kAvx2Kernels = {{&kBf16, &kInt8, &kInt4},
                              {kBf16.max_tokens, kQuantisedTokens, kQuantisedTokens},
                              &kBf16,
                              {nullptr, &kEightBitInt8, &kEightBitInt4},
                              {nullptr, &expand<Avx2, Int8>, &expand<Avx2, Int4>},
                              &attend<Avx2>};

}  // namespace fiddler
