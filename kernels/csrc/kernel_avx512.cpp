// The kernels for AVX-512 (F, BW, VL): weights are widened to float32, which is exact.
#include "attend_impl.h"
#include "avx512_ops.h"
#include "eight_bit_impl.h"
#include "product_impl.h"

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

  // As for AVX2: products are added in 16 bits.
  static constexpr bool kBias = false;
  static FIDDLER_INLINE Ints widen(Ints pairs) { return _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)); }
  static FIDDLER_INLINE Ints dot_nibbles(Ints pairs, Words nibbles, Words x) {
    return _mm512_add_epi16(pairs, _mm512_maddubs_epi16(nibbles, x));
  }
  static FIDDLER_INLINE Vec nibble_floats(Ints pairs) { return floats(widen(pairs)); }
  static FIDDLER_INLINE Ints dot_signed(Ints ints, Words words, Words x) {
    const __m512i signed_x = _mm512_mask_sub_epi8(x, _mm512_movepi8_mask(words), _mm512_setzero_si512(), x);
    return _mm512_add_epi32(ints, widen(_mm512_maddubs_epi16(_mm512_abs_epi8(words), signed_x)));
  }
  static FIDDLER_INLINE void store_pairs(float* to, std::size_t stride, Vec v) {
    alignas(64) float values[16];
    _mm512_store_ps(values, v);
    FIDDLER_UNROLL
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * stride, values + 2 * i, 8);
  }
};

constexpr Product kBf16 = make_product<Avx512>();
constexpr Product kEightBitInt8 = make_eight_bit_product<Avx512, Int8>();
constexpr Product kEightBitInt4 = make_eight_bit_product<Avx512, Int4>();

}  // namespace

const Product kAvx512Int8 = make_quantised_product<Avx512, Int8>();
const Product kAvx512Int4 = make_quantised_product<Avx512, Int4>();
void avx512_expand_int8(const Tiles& tiles, std::uint8_t* out) { expand<Avx512, Int8>(tiles, out); }
void avx512_expand_int4(const Tiles& tiles, std::uint8_t* out) { expand<Avx512, Int4>(tiles, out); }

const Kernels kAvx512Kernels = {{&kBf16, &kAvx512Int8, &kAvx512Int4},
                                {kBf16.max_tokens, kQuantisedTokens, kQuantisedTokens},
                                &kBf16,
                                {nullptr, &kEightBitInt8, &kEightBitInt4},
                                {nullptr, &avx512_expand_int8, &avx512_expand_int4},
                                &attend<Avx512>};

}  // namespace fiddler
