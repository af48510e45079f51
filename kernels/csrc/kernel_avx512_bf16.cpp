// The kernels for AVX512_BF16: activations are rounded to bf16, dpbf16 multiplies pairs and adds in float32.
// The instruction flushes denormal inputs and results to zero.
#include "attend_impl.h"
#include "avx512_ops.h"
#include "product_impl.h"

namespace fiddler {
namespace {

struct Avx512Bf16 : Avx512Ops {
  using Weight = __m512bh;
  using Input = __m512bh;
  using Activation = std::uint16_t;
  static constexpr int kHalves = 1;
  static constexpr int kMaxTokens = 12;  // 24 accumulators, 2 weights and 1 input of 32 registers
  static constexpr int rows(int n) { return n <= 4 ? 4 : 2; }

  static FIDDLER_INLINE __m512bh as_bf16(__m512i bits) {
    __m512bh out;
    std::memcpy(&out, &bits, sizeof(out));  // compilers disagree on a cast; this costs no instruction
    return out;
  }
  static FIDDLER_INLINE Weight weight(const std::uint8_t* pair, int) {
    return as_bf16(_mm512_load_si512(pair));
  }
  static FIDDLER_INLINE Input input(const std::uint16_t* pair, int) {
    std::int32_t both;
    std::memcpy(&both, pair, 4);
    return as_bf16(_mm512_set1_epi32(both));
  }
  static FIDDLER_INLINE Vec dot(Vec acc, Weight w, Input x) { return _mm512_dpbf16_ps(acc, w, x); }
  static FIDDLER_INLINE void store_pairs(std::uint16_t* to, std::size_t stride, Vec v) {
    const __m256bh rounded = _mm512_cvtneps_pbh(v);
    std::uint16_t values[16];
    std::memcpy(values, &rounded, sizeof(values));
    FIDDLER_UNROLL
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * stride, values + 2 * i, 4);
  }
};

}  // namespace

const Product kAvx512Bf16Product = make_product<Avx512Bf16>();

const Kernels kAvx512Bf16Kernels = {{&kAvx512Bf16Product, &kAvx512Int8, &kAvx512Int4},
                                    {Avx512Bf16::kMaxTokens, kQuantisedTokens, kQuantisedTokens},
                                    &kAvx512Bf16Product,
                                    {nullptr, &kVnniInt8, &kVnniInt4},
                                    {nullptr, &avx512_expand_int8, &avx512_expand_int4},
                                    &attend<Avx512Bf16>};

}  // namespace fiddler
