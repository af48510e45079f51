// Attention of one token over one range of keys, over a policy.
#pragma once

#include "activation_impl.h"

namespace fiddler {
namespace {

// Inputs that are no multiple of 16 end in a plain loop: head sizes are 64 or 128 in practice.
template <class P>
void attend(const Attend& a) {
  alignas(64) float weights[kMaxKeys];
  const std::size_t whole = a.head_dim / 16 * 16;
  for (std::size_t q = 0; q < a.query_count; ++q) {
    const float* query = a.queries + q * a.head_dim;
    float* out = a.out + q * (a.head_dim + 2);
    float greatest = -3.0e38f;
    for (std::size_t i = 0; i < a.key_count; ++i) {
      const float* key = a.keys + i * a.head_dim;
      auto sum = P::zero();
      for (std::size_t d = 0; d < whole; d += 16) {
        if (q == 0) FIDDLER_PREFETCH(a.values + i * a.head_dim + d);
        sum = P::fma(P::load(query + d), P::load(key + d), sum);
      }
      float score = P::sum(sum);
      for (std::size_t d = whole; d < a.head_dim; ++d) score += query[d] * key[d];
      score *= a.scale;
      weights[i] = score;
      greatest = score > greatest ? score : greatest;
    }
    auto total = P::zero();
    for (std::size_t i = 0; i < a.key_count; i += 16) {
      for (std::size_t pad = a.key_count; pad < i + 16; ++pad) weights[pad] = -3.0e38f;
      const auto x = P::add(P::load(weights + i), P::set1(-greatest));
      const auto w = P::zero_below(exp_small<P>(P::max(P::set1(-87.0f), x)), x, -87.0f);
      P::store(weights + i, w);
      total = P::add(total, w);
    }
    for (std::size_t d = 0; d < whole; d += 16) {
      auto sum = P::zero();
      for (std::size_t i = 0; i < a.key_count; ++i) {
        sum = P::fma(P::set1(weights[i]), P::load(a.values + i * a.head_dim + d), sum);
      }
      P::store(out + d, sum);
    }
    for (std::size_t d = whole; d < a.head_dim; ++d) {
      out[d] = 0.0f;
      for (std::size_t i = 0; i < a.key_count; ++i) out[d] += weights[i] * a.values[i * a.head_dim + d];
    }
    out[a.head_dim] = P::sum(total);
    out[a.head_dim + 1] = greatest;
  }
}

}  // namespace
}  // namespace fiddler
