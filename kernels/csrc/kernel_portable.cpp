// The kernels in plain C++, for any machine; compilers turn the loops of 16 into what the baseline offers.
#include "kernel_impl.h"

namespace fiddler {
namespace {

struct Portable {
  struct Vec {
    float v[16];
  };
  using Weight = Vec;
  using Input = float;
  using Activation = float;
  static constexpr int kHalves = 2;
  static constexpr int kMaxTokens = 4;
  static constexpr int rows(int) { return 1; }  // 16 floats fill four of the 16 registers that SSE2 has

  template <class F>
  static FIDDLER_INLINE Vec each(F f) {
    Vec out;
    FIDDLER_UNROLL
    for (int i = 0; i < 16; ++i) out.v[i] = f(i);
    return out;
  }
  static FIDDLER_INLINE Vec zero() { return set1(0.0f); }
  static FIDDLER_INLINE Vec set1(float a) { return each([=](int) { return a; }); }
  static FIDDLER_INLINE Vec load(const float* p) { return each([=](int i) { return p[i]; }); }
  static FIDDLER_INLINE void store(float* p, const Vec& a) {
    FIDDLER_UNROLL
    for (int i = 0; i < 16; ++i) p[i] = a.v[i];
  }
  static FIDDLER_INLINE Vec add(const Vec& a, const Vec& b) { return each([&](int i) { return a.v[i] + b.v[i]; }); }
  static FIDDLER_INLINE Vec mul(const Vec& a, const Vec& b) { return each([&](int i) { return a.v[i] * b.v[i]; }); }
  static FIDDLER_INLINE Vec div(const Vec& a, const Vec& b) { return each([&](int i) { return a.v[i] / b.v[i]; }); }
  static FIDDLER_INLINE Vec fma(const Vec& a, const Vec& b, const Vec& c) {
    return each([&](int i) { return a.v[i] * b.v[i] + c.v[i]; });
  }
  static FIDDLER_INLINE Vec max(const Vec& a, const Vec& b) {
    return each([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static FIDDLER_INLINE Vec min(const Vec& a, const Vec& b) {
    return each([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
  }
  static FIDDLER_INLINE Vec zero_below(const Vec& v, const Vec& x, float limit) {
    return each([&](int i) { return x.v[i] < limit ? 0.0f : v.v[i]; });
  }
  static FIDDLER_INLINE Vec round(const Vec& a) {  // adding 1.5 * 2^23 leaves no bits for a fraction
    return each([&](int i) { return (a.v[i] + 12582912.0f) - 12582912.0f; });
  }
  static FIDDLER_INLINE Vec exp2i(const Vec& a) {
    return each([&](int i) {
      const float n = a.v[i];
      return n == n ? from_bits((static_cast<std::int32_t>(n) + 127) << 23) : n;  // NaN has no integer
    });
  }
  static FIDDLER_INLINE float sum(const Vec& a) {
    float four[4];
    for (int i = 0; i < 4; ++i) four[i] = (a.v[i] + a.v[i + 8]) + (a.v[i + 4] + a.v[i + 12]);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
  static FIDDLER_INLINE float from_bits(std::int32_t bits) {
    float out;
    std::memcpy(&out, &bits, 4);
    return out;
  }
  static FIDDLER_INLINE Weight weight(const std::uint8_t* pair, int half) {
    return each([=](int i) {
      std::uint16_t bits;
      std::memcpy(&bits, pair + 4 * i + 2 * half, 2);
      return from_bits(static_cast<std::int32_t>(static_cast<std::uint32_t>(bits) << 16));
    });
  }
  static FIDDLER_INLINE Input input(const float* pair, int half) { return pair[half]; }
  static FIDDLER_INLINE Vec dot(const Vec& acc, const Weight& w, Input x) {
    return each([&](int i) { return acc.v[i] + w.v[i] * x; });
  }
  static FIDDLER_INLINE void store_pairs(float* to, std::size_t stride, const Vec& a) {
    FIDDLER_UNROLL
    for (int i = 0; i < 8; ++i) std::memcpy(to + i * stride, a.v + 2 * i, 8);
  }
};

}  // namespace

const Kernels kPortableKernels = make_kernels<Portable>();

}  // namespace fiddler
