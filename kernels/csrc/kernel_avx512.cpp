// The kernels for AVX-512 (F, BW, VL): weights are widened to float32, which is exact.
#include "avx512_ops.h"

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
};

}  // namespace

const Kernels kAvx512Kernels = make_kernels<Avx512>();

}  // namespace fiddler
