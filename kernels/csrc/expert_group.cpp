#include "expert_group.h"

#include <algorithm>
#include <optional>

#include "expert_tiles.h"

namespace fiddler {

Workspace& Workspace::of_thread() {
  static thread_local Workspace workspace;
  return workspace;
}

std::byte* Workspace::scratch() { return scratch_.at_least(kScratchBytes); }

float* Workspace::products(std::size_t floats) {
  return reinterpret_cast<float*>(products_.at_least(floats * sizeof(float)));
}

std::byte* Workspace::neurons(std::size_t bytes) { return neurons_.at_least(bytes); }

std::vector<Operand>& Workspace::operands(std::size_t count) {
  operands_.resize(count);
  return operands_;
}

AlignedBytes place_activations(const ExpertShape& shape, std::vector<JobGroup>& groups) {
  const auto bytes = [&](const JobGroup& g) {
    return ceil_div(g.tokens * shape.k_tiles() * g.way.activation_bytes(), kLineBytes) * kLineBytes;
  };
  std::size_t all = 0;
  for (const JobGroup& g : groups) all += bytes(g);
  AlignedBytes memory = aligned_bytes(all);
  std::byte* x = memory.get();
  for (JobGroup& g : groups) {
    g.x = x;
    x += bytes(g);
  }
  return memory;
}

void pack_group(const ExpertCall& call, const JobGroup& g) {
  const float* rows[kMaxGroup];
  for (std::size_t i = 0; i < g.tokens; ++i) {
    rows[i] = call.x + static_cast<std::size_t>(g.job->tokens[g.first + i]) * call.shape.hidden;
  }
  g.way.product->pack(rows, g.tokens, call.shape.hidden, call.shape.k_tiles(), g.x);
}

void multiply_gate_up(const ExpertCall& call, const GroupSpan& span, std::size_t first_panel,
                      std::size_t end_panel, float* products) {
  const ExpertShape& shape = call.shape;
  const std::uint8_t* block = span.job().block;
  Workspace& workspace = Workspace::of_thread();
  const std::size_t step = span.way().blocked ? kBlockTiles : shape.k_tiles();
  const auto tiles = [&](std::size_t panel, std::size_t k) {
    return gate_up_tiles(shape, block, panel, k, std::min(step, shape.k_tiles() - k));
  };
  std::vector<Operand>& operands = workspace.operands(span.count());
  for (std::size_t k = 0; k < shape.k_tiles(); k += step) {
    for (std::size_t p = first_panel; p < end_panel; ++p) {
      float* c = products + (p - first_panel) * kPanelGateUpTiles * kTileRows * span.tokens;
      for (std::size_t g = 0; g < span.count(); ++g) {
        const std::size_t tokens = span.begin[g].tokens;
        operands[g] = {span.begin[g].x + k * tokens * span.way().activation_bytes(), tokens, c,
                       tokens * kTileRows, kTileRows};
        c += kPanelGateUpTiles * kTileRows * tokens;
      }
      std::optional<Tiles> next;
      if (p + 1 < end_panel) {
        next = tiles(p + 1, k);
      } else if (k + step < shape.k_tiles()) {
        next = tiles(first_panel, k + step);
      }
      multiply(span.way(), tiles(p, k), operands.data(), operands.size(), k > 0, next ? &*next : nullptr,
               workspace.scratch());
    }
  }
}

}  // namespace fiddler
