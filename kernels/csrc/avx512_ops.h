// Vector operations that the AVX-512 policies share. Unnamed namespace: see kernel.h.
#pragma once

#include <immintrin.h>

#include "policy.h"

namespace fiddler {
namespace {

struct Avx512Ops {
  using Vec = __m512;
  static constexpr bool kFused = true;
  static FIDDLER_INLINE Vec zero() { return _mm512_setzero_ps(); }
  static FIDDLER_INLINE Vec set1(float v) { return _mm512_set1_ps(v); }
  static FIDDLER_INLINE Vec load(const float* p) { return _mm512_loadu_ps(p); }
  static FIDDLER_INLINE void store(float* p, Vec v) { _mm512_storeu_ps(p, v); }
  static FIDDLER_INLINE Vec add(Vec x, Vec y) { return _mm512_add_ps(x, y); }
  static FIDDLER_INLINE Vec mul(Vec x, Vec y) { return _mm512_mul_ps(x, y); }
  static FIDDLER_INLINE Vec div(Vec x, Vec y) { return _mm512_div_ps(x, y); }
  static FIDDLER_INLINE Vec max(Vec x, Vec y) { return _mm512_max_ps(x, y); }
  static FIDDLER_INLINE Vec min(Vec x, Vec y) { return _mm512_min_ps(x, y); }
  static FIDDLER_INLINE Vec fma(Vec x, Vec y, Vec z) { return _mm512_fmadd_ps(x, y, z); }
  static FIDDLER_INLINE Vec zero_below(Vec v, Vec x, float limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, _mm512_set1_ps(limit), _CMP_NLT_UQ), v);
  }
  static FIDDLER_INLINE Vec round(Vec x) {
    return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static FIDDLER_INLINE Vec exp2i(Vec n) { return _mm512_scalef_ps(_mm512_set1_ps(1.0f), n); }
  static FIDDLER_INLINE float sum(Vec x) { return _mm512_reduce_add_ps(x); }

  using Words = __m512i;
  static constexpr int quantised_rows(int n) { return n <= 2 ? 4 : 2; }  // sums of a group and of all groups

  static FIDDLER_INLINE Words load_words(const std::uint8_t* p) { return _mm512_load_si512(p); }
  template <int i>
  static FIDDLER_INLINE Vec signed_byte(Words words) {
    return _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(words, 24 - 8 * i), 24));
  }
  // A look-up in place of masking and converting: the index is the low four bits of a lane.
  template <int i>
  static FIDDLER_INLINE Vec nibble(Words words) {
    const __m512 values = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    return _mm512_permutexvar_ps(_mm512_srli_epi32(words, 4 * i), values);
  }
  static FIDDLER_INLINE Vec halves(const std::uint8_t* p) {
    return _mm512_cvtph_ps(_mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static FIDDLER_INLINE Vec bytes(const std::uint8_t* p) {
    return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(_mm_load_si128(reinterpret_cast<const __m128i*>(p))));
  }
  static FIDDLER_INLINE void store_bf16(std::uint8_t* p, Vec even, Vec odd) {
    const __m512i half = _mm512_set1_epi32(0x8000);  // rounds to nearest, ties away from zero
    const __m512i low = _mm512_srli_epi32(_mm512_add_epi32(_mm512_castps_si512(even), half), 16);
    const __m512i high = _mm512_add_epi32(_mm512_castps_si512(odd), half);
    _mm512_store_si512(p, _mm512_mask_mov_epi16(low, 0xaaaaaaaa, high));
  }

  using Ints = __m512i;
  static constexpr int kEightBitTokens = 6;  // 12 sums of a group and 12 of all groups of 32 registers
  static constexpr int eight_bit_rows(int n) { return n <= 2 ? 4 : 2; }

  static FIDDLER_INLINE Ints no_ints() { return _mm512_setzero_si512(); }
  static FIDDLER_INLINE Ints set1_ints(std::int32_t v) { return _mm512_set1_epi32(v); }
  static FIDDLER_INLINE Vec floats(Ints x) { return _mm512_cvtepi32_ps(x); }
  static FIDDLER_INLINE float largest(Vec x) { return _mm512_reduce_max_ps(_mm512_abs_ps(x)); }
  static FIDDLER_INLINE void whole_bytes(std::uint8_t (&to)[16], Vec v, bool octets) {
    __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v));
    if (octets) {  // the order in which the nibbles of a word are taken as bytes, see low_nibbles
      bytes = _mm_shuffle_epi8(bytes, _mm_setr_epi8(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15));
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  }
  static FIDDLER_INLINE Words low_nibbles(Words words) { return _mm512_and_si512(words, _mm512_set1_epi8(15)); }
  static FIDDLER_INLINE Words high_nibbles(Words words) { return low_nibbles(_mm512_srli_epi32(words, 4)); }
};

}  // namespace
}  // namespace fiddler
