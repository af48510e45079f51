// The division of an expert call by rows of w2, for many tokens per expert: see expert_task.h.
#include <algorithm>
#include <utility>

#include "expert_group.h"

namespace fiddler {
namespace {

constexpr std::size_t kChunksPerThread = 8;  // an interrupted thread delays the end by one chunk at most
constexpr std::size_t kSegmentTokens = 128;  // tokens that share one reading of a panel: their x fits caches
constexpr std::size_t kNeuronBytes = std::size_t{64} << 20;  // of one pass, about; bounds the memory of a call
constexpr std::size_t kRowTiles = 2;         // of w2 taken together: a run of 2 KB in every panel

// Tokens of one job that pass through the expert together.
struct Segment {
  std::size_t first_group;
  std::size_t end_group;
  std::size_t tokens;
  const ExpertJob* job;
};

// Segments whose neurons are held at the same time.
struct Pass {
  std::size_t first_segment;
  std::size_t end_segment;
};

struct Chunk {
  const Segment* segment;
  std::size_t first_panel;
  std::size_t end_panel;
};

struct RowState {
  explicit RowState(ExpertCall c) : call(std::move(c)) {}

  ExpertCall call;
  std::vector<JobGroup> groups;
  std::vector<std::size_t> neuron_offsets;  // bytes, of every group
  std::vector<Segment> segments;
  std::vector<Pass> passes;
  std::vector<std::vector<Chunk>> chunks;  // of every pass
  AlignedBytes packed;
  AlignedBytes neurons;

  std::size_t neuron_bytes(std::size_t tokens, std::size_t panels) const {
    return tokens * panels * kPanelRows * call.kernels.activation_bytes;
  }
  void run_chunk(const Chunk& chunk) const;
  void run_rows(const Pass& pass, std::size_t first_tile) const;
};

void RowState::run_chunk(const Chunk& chunk) const {
  for (std::size_t p = chunk.first_panel; p < chunk.end_panel; ++p) {
    const std::uint8_t* panel = chunk.segment->job->block + p * call.shape.panel_bytes();
    for (std::size_t i = chunk.segment->first_group; i < chunk.segment->end_group; ++i) {
      run_neurons(call, groups[i], panel, neurons.get() + neuron_offsets[i] + neuron_bytes(groups[i].tokens, p));
    }
  }
}

void RowState::run_rows(const Pass& pass, std::size_t first_tile) const {
  alignas(64) float c[kRowTiles * kMaxGroup * kTileRows];
  const ExpertShape& shape = call.shape;
  const std::size_t column = first_tile * kTileRows;
  const std::size_t columns = std::min(kRowTiles * kTileRows, shape.hidden - column);
  for (std::size_t s = pass.first_segment; s < pass.end_segment; ++s) {
    const std::uint8_t* tiles = segments[s].job->block + shape.down_offset() + first_tile * kTileBytes;
    for (std::size_t i = segments[s].first_group; i < segments[s].end_group; ++i) {
      const JobGroup& g = groups[i];
      call.kernels.matmul({tiles, kTileBytes, shape.panel_bytes(), kRowTiles, shape.panels(),
                           neurons.get() + neuron_offsets[i], g.tokens, c, kTileRows, kRowTiles * kTileRows,
                           false});
      for (std::size_t n = 0; n < g.tokens; ++n) {
        const auto token = static_cast<std::size_t>(g.job->tokens[g.first + n]);
        add_scaled(call.out + token * shape.hidden + column, c + n * kRowTiles * kTileRows,
                   g.job->weights[g.first + n], columns);
      }
    }
  }
}

void add_segments(RowState& state) {
  const ExpertCall& call = state.call;
  std::byte* x = state.packed.get();
  std::vector<Group> parts, token_groups;
  for (const ExpertJob& job : call.jobs) {
    parts.clear();
    add_groups(parts, 0, job.count, kSegmentTokens);
    for (const Group& part : parts) {
      const std::size_t first_group = state.groups.size();
      token_groups.clear();
      add_groups(token_groups, part.first, part.tokens, call.kernels.max_tokens);
      for (const Group& g : token_groups) {
        state.groups.push_back({&job, g.first, g.tokens, x});
        x += packed_bytes(call, g.tokens);
      }
      state.segments.push_back({first_group, state.groups.size(), part.tokens, &job});
    }
  }
}

// Cuts the segments into passes, places their neurons, and allocates for the largest pass.
void add_passes(RowState& state) {
  const std::size_t panels = state.call.shape.panels();
  state.neuron_offsets.resize(state.groups.size());
  std::size_t used = 0, most = 0;
  for (std::size_t s = 0; s < state.segments.size(); ++s) {
    const Segment& segment = state.segments[s];
    const std::size_t bytes = state.neuron_bytes(segment.tokens, panels);
    if (s == 0 || used + bytes > kNeuronBytes) {
      state.passes.push_back({s, s});
      used = 0;
    }
    state.passes.back().end_segment = s + 1;
    for (std::size_t i = segment.first_group; i < segment.end_group; ++i) {
      state.neuron_offsets[i] = used;
      used += state.neuron_bytes(state.groups[i].tokens, panels);
    }
    most = std::max(most, used);
  }
  state.neurons = aligned_bytes(most);
}

// Chunks of about equal work: a segment with more tokens is cut into more pieces.
std::vector<Chunk> pass_chunks(const RowState& state, const Pass& pass) {
  const std::size_t panels = state.call.shape.panels();
  std::size_t work = 0;
  for (std::size_t s = pass.first_segment; s < pass.end_segment; ++s) work += panels * state.segments[s].tokens;
  const std::size_t target = ceil_div(work, static_cast<std::size_t>(state.call.threads) * kChunksPerThread);
  std::vector<Chunk> chunks;
  for (std::size_t s = pass.first_segment; s < pass.end_segment; ++s) {
    const std::size_t pieces = std::min(panels, ceil_div(panels * state.segments[s].tokens, target));
    for (std::size_t i = 0; i < pieces; ++i) {
      chunks.push_back({&state.segments[s], panels * i / pieces, panels * (i + 1) / pieces});
    }
  }
  return chunks;
}

}  // namespace

std::shared_ptr<Task> make_row_task(ExpertCall c) {
  auto state = std::make_shared<RowState>(std::move(c));
  std::size_t entries = 0;
  for (const ExpertJob& job : state->call.jobs) entries += job.count;
  state->packed = aligned_bytes(packed_bytes(state->call, entries));
  add_segments(*state);
  add_passes(*state);

  std::vector<Phase> phases;
  phases.push_back({static_cast<std::uint32_t>(state->groups.size()),
                    [state](std::uint32_t i) { pack_group(state->call, state->groups[i]); }});
  const std::size_t row_steps = ceil_div(state->call.shape.hidden, kRowTiles * kTileRows);
  for (std::size_t p = 0; p < state->passes.size(); ++p) {
    state->chunks.push_back(pass_chunks(*state, state->passes[p]));
    phases.push_back({static_cast<std::uint32_t>(state->chunks[p].size()),
                      [state, p](std::uint32_t i) { state->run_chunk(state->chunks[p][i]); }});
    phases.push_back({static_cast<std::uint32_t>(row_steps), [state, p](std::uint32_t i) {
                        state->run_rows(state->passes[p], i * kRowTiles);
                      }});
  }
  return std::make_shared<Task>(std::move(phases));
}

}  // namespace fiddler
