#include "attention_task.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "layout.h"

namespace fiddler {
namespace {

struct Attention {
  AttentionCall call;
  std::size_t ranges;
  std::vector<float> partials;  // [kv_heads][ranges][heads per key head][head_dim + 2], see Attend

  std::size_t group() const { return call.heads / call.kv_heads; }
  float* partial(std::size_t head, std::size_t range) {
    return partials.data() + (head * ranges + range) * group() * (call.head_dim + 2);
  }

  void run_range(std::size_t item) {
    const std::size_t head = item / ranges, range = item % ranges;
    const std::size_t first = call.first + range * kMaxKeys;
    const std::size_t offset = (head * call.capacity + first) * call.head_dim;
    call.kernels.attend({call.queries + head * group() * call.head_dim, group(), call.head_dim,
                         call.keys + offset, call.values + offset, std::min(kMaxKeys, call.end - first),
                         1.0f / std::sqrt(static_cast<float>(call.head_dim)), partial(head, range)});
  }

  void join(std::size_t head) {
    const std::size_t stride = call.head_dim + 2;
    for (std::size_t q = 0; q < group(); ++q) {
      float greatest = partial(head, 0)[q * stride + call.head_dim + 1];
      for (std::size_t r = 1; r < ranges; ++r) {
        greatest = std::max(greatest, partial(head, r)[q * stride + call.head_dim + 1]);
      }
      float* out = call.out + (head * group() + q) * call.head_dim;
      std::fill(out, out + call.head_dim, 0.0f);
      float total = 0.0f;
      for (std::size_t r = 0; r < ranges; ++r) {
        const float* part = partial(head, r) + q * stride;
        const float factor = std::exp(part[call.head_dim + 1] - greatest);
        total += factor * part[call.head_dim];
        for (std::size_t d = 0; d < call.head_dim; ++d) out[d] += factor * part[d];
      }
      for (std::size_t d = 0; d < call.head_dim; ++d) out[d] /= total;
    }
  }
};

}  // namespace

std::shared_ptr<Task> make_attention_task(const AttentionCall& call) {
  const std::size_t ranges = ceil_div(call.end - call.first, kMaxKeys);
  auto state = std::make_shared<Attention>(Attention{call, ranges, {}});
  state->partials.resize(call.heads * ranges * (call.head_dim + 2));
  return std::make_shared<Task>(std::vector<Phase>{
      {static_cast<std::uint32_t>(call.kv_heads * ranges), [state](std::uint32_t i) { state->run_range(i); }},
      {static_cast<std::uint32_t>(call.kv_heads), [state](std::uint32_t i) { state->join(i); }},
  });
}

}  // namespace fiddler
