#include "token_pass.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "attention_task.h"
#include "linear_task.h"

namespace fiddler {
namespace {

constexpr std::size_t kLanes = 16;

// Sixteen independent sums, which compilers turn into vector operations of any width.
float dot(const float* a, const float* b, std::size_t count) {
  float lanes[kLanes] = {};
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += a[i + lane] * b[i + lane];
  }
  float sum = 0.0f;
  for (; i < count; ++i) sum += a[i] * b[i];
  for (const float lane : lanes) sum += lane;
  return sum;
}

}  // namespace

TokenPass::TokenPass(const Kernels& kernels, std::shared_ptr<Pool> pool, const TokenShape& shape,
                     const TokenBuffers& buffers)
    : kernels_(kernels),
      pool_(std::move(pool)),
      shape_(shape),
      buffers_(buffers),
      qkv_((shape.heads + 2 * shape.kv_heads) * shape.head_dim),
      mixed_(shape.heads * shape.head_dim),
      projected_(shape.hidden),
      logits_(shape.experts) {}

void TokenPass::run(const TokenLayer& layer, const TokenCache& cache) {
  normalise(layer.input_norm);
  linear(qkv_.size(), shape_.hidden, layer.qkv, buffers_.normed, qkv_.data());
  rotate(cache);
  finish(make_attention_task({kernels_, shape_.heads, shape_.kv_heads, shape_.head_dim, qkv_.data(), cache.keys,
                              cache.values, cache.capacity, cache.first, cache.position + 1, mixed_.data()}));
  linear(shape_.hidden, mixed_.size(), layer.attention_out, mixed_.data(), projected_.data());
  for (std::size_t i = 0; i < shape_.hidden; ++i) buffers_.x[i] += projected_[i];
  normalise(layer.post_norm);
  route(layer.router);
}

void TokenPass::normalise(const float* weight) {
  const float* x = buffers_.x;
  const float mean = dot(x, x, shape_.hidden) / static_cast<float>(shape_.hidden);
  const float scale = 1.0f / std::sqrt(mean + shape_.eps);
  for (std::size_t i = 0; i < shape_.hidden; ++i) buffers_.normed[i] = x[i] * scale * weight[i];
}

void TokenPass::linear(std::size_t rows, std::size_t cols, const std::uint8_t* weights, const float* x,
                       float* out) {
  finish(make_linear_task(kernels_, default_tuning(kernels_), pool_->threads(), {rows, cols}, weights, x, 1, out));
}

// Rotates queries and keys, and stores the key and the value.
void TokenPass::rotate(const TokenCache& cache) {
  const std::size_t half = shape_.head_dim / 2;
  for (std::size_t head = 0; head < shape_.heads + shape_.kv_heads; ++head) {
    float* low = qkv_.data() + head * shape_.head_dim;
    float* high = low + half;
    for (std::size_t i = 0; i < half; ++i) {
      const float a = low[i], b = high[i];
      low[i] = a * cache.cos[i] + b * cache.sin[i];
      high[i] = b * cache.cos[half + i] + a * cache.sin[half + i];
    }
  }
  const float* key = qkv_.data() + shape_.heads * shape_.head_dim;
  const float* value = key + shape_.kv_heads * shape_.head_dim;
  for (std::size_t head = 0; head < shape_.kv_heads; ++head) {
    const std::size_t to = (head * cache.capacity + cache.position) * shape_.head_dim;
    std::copy_n(key + head * shape_.head_dim, shape_.head_dim, cache.keys + to);
    std::copy_n(value + head * shape_.head_dim, shape_.head_dim, cache.values + to);
  }
}

void TokenPass::route(const float* router) {
  for (std::size_t e = 0; e < shape_.experts; ++e) {
    logits_[e] = dot(router + e * shape_.hidden, buffers_.normed, shape_.hidden);
  }
  const auto begin = logits_.begin();
  float total = 0.0f, best = 0.0f;
  for (std::size_t k = 0; k < shape_.top_k; ++k) {
    const auto chosen = std::max_element(begin, logits_.end());
    if (k == 0) best = *chosen;
    buffers_.ids[k] = chosen - begin;
    buffers_.weights[k] = std::exp(*chosen - best);
    total += buffers_.weights[k];
    *chosen = -INFINITY;
  }
  for (std::size_t k = 0; k < shape_.top_k; ++k) buffers_.weights[k] /= total;
}

void TokenPass::finish(std::shared_ptr<Task> task) {
  pool_->submit(task);
  pool_->finish(*task);
}

}  // namespace fiddler
