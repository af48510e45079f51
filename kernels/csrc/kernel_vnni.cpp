// Products with 8-bit activations for AVX512_VNNI, which every CPU with AVX512_BF16 has.
#include "avx512_ops.h"
#include "eight_bit_impl.h"

namespace fiddler {
namespace {

struct Vnni : Avx512Ops {
  using Activation = float;

  // VPDPBUSD multiplies unsigned bytes with signed ones: weights are taken + 128, and the sums begin at
  // -128 x the sum of the activations.
  static constexpr bool kBias = true;
  static FIDDLER_INLINE Ints dot_nibbles(Ints ints, Words nibbles, Words x) {
    return _mm512_dpbusd_epi32(ints, nibbles, x);
  }
  static FIDDLER_INLINE Vec nibble_floats(Ints ints) { return floats(ints); }
  static FIDDLER_INLINE Ints dot_signed(Ints ints, Words words, Words x) {
    return _mm512_dpbusd_epi32(ints, _mm512_xor_si512(words, _mm512_set1_epi8(-128)), x);
  }
};

}  // namespace

const Product kVnniInt8 = make_eight_bit_product<Vnni, Int8>();
const Product kVnniInt4 = make_eight_bit_product<Vnni, Int4>();

}  // namespace fiddler
