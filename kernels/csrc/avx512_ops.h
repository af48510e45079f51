// Vector operations that the AVX-512 policies share. Unnamed namespace: see kernel.h.
#pragma once

#include <immintrin.h>

#include "policy.h"

namespace fiddler {
namespace {

struct Avx512Ops {
  using Vec = __m512;
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
};

}  // namespace
}  // namespace fiddler
