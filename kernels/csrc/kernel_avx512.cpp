// The kernels for AVX-512 (F, BW, VL): weights are widened to float32, which is exact.
#include "attend_impl.h"
#include "avx512_ops.h"
#include "product_impl.h"
#include "quantised_impl.h"

namespace fiddler {
namespace {

struct Avx512 : Avx512Ops {
  using Weight = __m512;
  using Input = __m512;
  using Activation = float;
  static constexpr int kHalves = 2;
  static constexpr int kMaxTokens = 12;  // 24 accumulators, 2 weights and 1 input of 32 registers
  static constexpr int rows(int n) { return n <= 4 ? 4 : 2; }

  static FIDDLER_INLINE Weight weight(const std::uint8_t* pair, int half) {
    const __m512i both = _mm512_load_si512(pair);
    return _mm512_castsi512_ps(half == 0 ? _mm512_slli_epi32(both, 16)
                                         : _mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xffff0000))));
  }
  static FIDDLER_INLINE Input input(const float* pair, int half) { return _mm512_set1_ps(pair[half]); }
  static FIDDLER_INLINE Vec dot(Vec acc, Weight w, Input x) { return _mm512_fmadd_ps(w, x, acc); }
  static FIDDLER_INLINE void store_pairs(float* to, std::size_t stride, Vec v) {
    alignas(64) float values[16];
    _mm512_store_ps(values, v);
    FIDDLER_UNROLL
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * stride, values + 2 * i, 8);
  }

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
};

constexpr Product kBf16 = make_product<Avx512>();

}  // namespace

const Product kAvx512Int8 = make_quantised_product<Avx512, Int8>();
const Product kAvx512Int4 = make_quantised_product<Avx512, Int4>();
void avx512_expand_int8(const Tiles& tiles, std::uint8_t* out) { expand<Avx512, Int8>(tiles, out); }
void avx512_expand_int4(const Tiles& tiles, std::uint8_t* out) { expand<Avx512, Int4>(tiles, out); }

const Kernels kAvx512Kernels = {{&kBf16, &kAvx512Int8, &kAvx512Int4},
                                {kBf16.max_tokens, kQuantisedTokens, kQuantisedTokens},
                                &kBf16,
                                {nullptr, &avx512_expand_int8, &avx512_expand_int4},
                                &attend<Avx512>};

}  // namespace fiddler
