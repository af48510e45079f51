// What both divisions of an expert call have in common: packed activations and the first half of an expert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "aligned.h"
#include "expert_task.h"
#include "groups.h"

namespace fiddler {

// Some tokens of one job: entries [first, first + tokens) of its lists.
struct JobGroup {
  const ExpertJob* job;
  std::size_t first;
  std::size_t tokens;
  std::byte* x;  // their packed activations
};

inline std::size_t packed_bytes(const ExpertCall& call, std::size_t tokens) {
  return tokens * call.shape.padded_hidden() * call.kernels.activation_bytes;
}

inline void pack_group(const ExpertCall& call, const JobGroup& g) {
  const float* rows[kMaxGroup];
  for (std::size_t i = 0; i < g.tokens; ++i) {
    rows[i] = call.x + static_cast<std::size_t>(g.job->tokens[g.first + i]) * call.shape.hidden;
  }
  call.kernels.pack(rows, g.tokens, call.shape.hidden, call.shape.k_tiles(), g.x);
}

// The 32 neurons of a panel, as packed activations for the panel's w2 columns.
inline void run_neurons(const ExpertCall& call, const JobGroup& g, const std::uint8_t* panel, void* neurons) {
  alignas(64) float gate_up[kPanelGateUpTiles * kMaxGroup * kTileRows];
  const std::size_t stride = call.shape.k_tiles() * kTileBytes;
  call.kernels.matmul({panel, stride, kTileBytes, kPanelGateUpTiles, call.shape.k_tiles(), g.x, g.tokens,
                       gate_up, g.tokens * kTileRows, kTileRows, false});
  call.kernels.swiglu(gate_up, g.tokens, neurons);
}

// out[0, columns) += weight * from[0, columns)
inline void add_scaled(float* out, const float* from, float weight, std::size_t columns) {
  for (std::size_t c = 0; c < columns; ++c) out[c] += weight * from[c];
}

}  // namespace fiddler
