// The kernels in plain C++, for any machine; compilers turn the loops of 16 into what the baseline offers.
#include "attend_impl.h"
#include "product_impl.h"
#include "quantised_impl.h"

namespace fiddler {
namespace {

struct Portable {
  struct Vec {
    float v[16];
  };
  using Weight = Vec;
  using Input = float;
  using Activation = float;
  static constexpr bool kFused = false;
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

  struct Words {
    std::uint32_t v[16];
  };
  static constexpr int quantised_rows(int) { return 1; }

  static FIDDLER_INLINE Words load_words(const std::uint8_t* p) {
    Words out;
    for (int i = 0; i < 16; ++i, p += 4) {  // little endian, whatever the machine
      out.v[i] = static_cast<std::uint32_t>(p[0] | p[1] << 8 | p[2] << 16) | static_cast<std::uint32_t>(p[3]) << 24;
    }
    return out;
  }
  template <int byte>
  static FIDDLER_INLINE Vec signed_byte(const Words& words) {
    return each([&](int i) {
      const auto bits = static_cast<std::int32_t>(words.v[i] << (24 - 8 * byte));
      return static_cast<float>(bits >> 24);
    });
  }
  template <int index>
  static FIDDLER_INLINE Vec nibble(const Words& words) {
    return each([&](int i) { return static_cast<float>(static_cast<int>(words.v[i] >> 4 * index & 15)); });
  }
  static FIDDLER_INLINE Vec bytes(const std::uint8_t* p) {
    return each([=](int i) { return static_cast<float>(p[i]); });
  }
  static FIDDLER_INLINE Vec halves(const std::uint8_t* p) {
    return each([=](int i) { return half(static_cast<std::uint16_t>(p[2 * i] | p[2 * i + 1] << 8)); });
  }
  // IEEE 754 binary16. Shifted into a float32's place its exponent is 112 too small, which a product mends, also
  // for denormals; only infinity and NaN keep theirs.
  static FIDDLER_INLINE float half(std::uint16_t bits) {
    const auto sign = static_cast<std::int32_t>(static_cast<std::uint32_t>(bits & 0x8000) << 16);
    const std::int32_t rest = (bits & 0x7fff) << 13;
    const float magnitude = rest >= 0x7c00 << 13 ? from_bits(rest | 0x7f800000) : from_bits(rest) * 0x1p112f;
    return sign < 0 ? -magnitude : magnitude;
  }
  static FIDDLER_INLINE void store_bf16(std::uint8_t* p, const Vec& even, const Vec& odd) {
    for (int i = 0; i < 16; ++i) {
      const std::uint16_t both[2] = {rounded(even.v[i]), rounded(odd.v[i])};
      std::memcpy(p + 4 * i, both, 4);
    }
  }
  static FIDDLER_INLINE std::uint16_t rounded(float value) {  // to nearest, ties away from zero
    std::uint32_t bits;
    std::memcpy(&bits, &value, 4);
    return static_cast<std::uint16_t>((bits + 0x8000) >> 16);
  }
};

constexpr Product kBf16 = make_product<Portable>();
constexpr Product kInt8 = make_quantised_product<Portable, Int8>();
constexpr Product kInt4 = make_quantised_product<Portable, Int4>();

}  // namespace

const Kernels kPortableKernels = {{&kBf16, &kInt8, &kInt4},
                                  {kBf16.max_tokens, kQuantisedTokens, kQuantisedTokens},
                                  &kBf16,
                                  {nullptr, nullptr, nullptr},
                                  {nullptr, &expand<Portable, Int8>, &expand<Portable, Int4>},
                                  &attend<Portable>};

}  // namespace fiddler
