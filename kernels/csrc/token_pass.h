// One token through the dense part of a decoder layer: everything between two layers' experts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernel.h"
#include "pool.h"

namespace fiddler {

struct TokenShape {
  std::size_t hidden;
  std::size_t heads;
  std::size_t kv_heads;
  std::size_t head_dim;  // even
  std::size_t experts;
  std::size_t top_k;     // 1 .. experts
  float eps;             // of RMSNorm
};

struct TokenLayer {
  const float* input_norm;            // [hidden]
  const std::uint8_t* qkv;            // packed [(heads + 2 kv_heads) * head_dim, hidden]
  const std::uint8_t* attention_out;  // packed [hidden, heads * head_dim]
  const float* post_norm;             // [hidden]
  const float* router;                // [experts, hidden]
};

// The part of a KV cache that belongs to a layer, and where the token stands in it.
struct TokenCache {
  float* keys;  // [kv_heads][capacity][head_dim]
  float* values;
  std::size_t capacity;
  std::size_t position;  // of the token; its key and value are written there
  std::size_t first;     // the earliest position that it sees
  const float* cos;      // [head_dim], of the position
  const float* sin;      // likewise, the first half negated
};

// What goes in and comes out, in memory that outlives the pass.
struct TokenBuffers {
  float* x;           // [hidden], the residual stream: attention is added to it
  float* normed;      // [hidden], out: the experts' input
  std::int64_t* ids;  // [top_k], out: the chosen experts, best first; of equal logits the lower id
  float* weights;     // [top_k], out: softmax over the chosen logits
};

class TokenPass {
 public:
  TokenPass(const Kernels& kernels, std::shared_ptr<Pool> pool, const TokenShape& shape,
            const TokenBuffers& buffers);
  // Norm, attention, residual, norm and router of one layer, on the calling thread and the pool's.
  void run(const TokenLayer& layer, const TokenCache& cache);

 private:
  void normalise(const float* weight);
  void linear(std::size_t rows, std::size_t cols, const std::uint8_t* weights, const float* x, float* out);
  void rotate(const TokenCache& cache);
  void route(const float* router);
  void finish(std::shared_ptr<Task> task);

  const Kernels& kernels_;
  std::shared_ptr<Pool> pool_;
  const TokenShape shape_;
  const TokenBuffers buffers_;
  std::vector<float> qkv_;
  std::vector<float> mixed_;
  std::vector<float> projected_;
  std::vector<float> logits_;
};

}  // namespace fiddler
