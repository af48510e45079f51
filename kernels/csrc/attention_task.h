// Attention of one token to the keys and values that it sees.
#pragma once

#include <cstddef>
#include <memory>

#include "kernel.h"
#include "task.h"

namespace fiddler {

struct AttentionCall {
  const Kernels& kernels;
  std::size_t heads;         // a multiple of kv_heads; consecutive query heads share a key head
  std::size_t kv_heads;
  std::size_t head_dim;
  const float* queries;      // [heads][head_dim]
  const float* keys;         // [kv_heads][capacity][head_dim], of which positions [first, end) are seen
  const float* values;       // likewise
  std::size_t capacity;
  std::size_t first;
  std::size_t end;           // above first
  float* out;                // [heads][head_dim]
};

// softmax(q k / sqrt(head_dim)) v, float32. Ranges of keys are divided between threads and their results joined
// as in FlashDecoding: each range has its own greatest score. Results do not depend on the threads.
std::shared_ptr<Task> make_attention_task(const AttentionCall& call);

}  // namespace fiddler
