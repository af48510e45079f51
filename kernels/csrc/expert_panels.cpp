// The division of an expert call by panels, for few tokens per expert: see expert_task.h.
#include <algorithm>
#include <utility>

#include "expert_group.h"

namespace fiddler {
namespace {

constexpr std::size_t kChunksPerThread = 8;  // an interrupted thread delays the end by one chunk at most
// Adding the partials is worth a second thread from this many of their floats on (about 20 us of adding).
constexpr std::size_t kParallelReduction = 128 * 1024;

struct Chunk {
  std::size_t job;
  std::size_t first_panel;
  std::size_t end_panel;
  std::size_t partial;  // offset of [job's tokens][padded hidden] floats
};

struct PanelState {
  explicit PanelState(ExpertCall c) : call(std::move(c)) {}

  ExpertCall call;
  std::vector<JobGroup> groups;
  std::vector<std::size_t> job_groups;  // first group of every job, and the end
  std::vector<Chunk> chunks;
  AlignedBytes packed;
  AlignedBytes partials;
  std::size_t partial_floats = 0;

  void run_chunk(const Chunk& chunk) const;
  void reduce(std::size_t first_column, std::size_t end_column) const;
  float* partial(const Chunk& chunk) const { return reinterpret_cast<float*>(partials.get()) + chunk.partial; }
};

void PanelState::run_chunk(const Chunk& chunk) const {
  const ExpertShape& shape = call.shape;
  alignas(64) std::byte neurons[kPanelRows * kMaxGroup * sizeof(float)];
  for (std::size_t p = chunk.first_panel; p < chunk.end_panel; ++p) {
    const std::uint8_t* panel = call.jobs[chunk.job].block + p * shape.panel_bytes();
    for (std::size_t i = job_groups[chunk.job]; i < job_groups[chunk.job + 1]; ++i) {
      const JobGroup& g = groups[i];
      run_neurons(call, g, panel, neurons);
      call.kernels.matmul({panel + shape.down_offset(), kTileBytes, kTileBytes, shape.down_row_tiles(), 1,
                           neurons, g.tokens, partial(chunk) + g.first * shape.padded_hidden(), kTileRows,
                           shape.padded_hidden(), p != chunk.first_panel});
    }
  }
}

void PanelState::reduce(std::size_t first_column, std::size_t end_column) const {
  for (const Chunk& chunk : chunks) {
    const ExpertJob& job = call.jobs[chunk.job];
    for (std::size_t i = 0; i < job.count; ++i) {
      add_scaled(call.out + static_cast<std::size_t>(job.tokens[i]) * call.shape.hidden + first_column,
                 partial(chunk) + i * call.shape.padded_hidden() + first_column, job.weights[i],
                 end_column - first_column);
    }
  }
}

void add_chunks(PanelState& state) {
  const std::size_t panels = state.call.shape.panels();
  const std::size_t wanted = static_cast<std::size_t>(state.call.threads) * kChunksPerThread;
  const std::size_t target = std::max<std::size_t>(1, panels * state.call.jobs.size() / wanted);
  for (std::size_t j = 0; j < state.call.jobs.size(); ++j) {
    const std::size_t pieces = ceil_div(panels, target);
    for (std::size_t i = 0; i < pieces; ++i) {
      state.chunks.push_back({j, panels * i / pieces, panels * (i + 1) / pieces, state.partial_floats});
      state.partial_floats += state.call.jobs[j].count * state.call.shape.padded_hidden();
    }
  }
}

}  // namespace

std::shared_ptr<Task> make_panel_task(ExpertCall c) {
  auto state = std::make_shared<PanelState>(std::move(c));
  const ExpertCall& call = state->call;
  std::size_t entries = 0;
  for (const ExpertJob& job : call.jobs) entries += job.count;
  state->packed = aligned_bytes(packed_bytes(call, entries));

  std::byte* x = state->packed.get();
  std::vector<Group> token_groups;
  for (const ExpertJob& job : call.jobs) {
    state->job_groups.push_back(state->groups.size());
    token_groups.clear();
    add_groups(token_groups, 0, job.count, call.kernels.max_tokens);
    for (const Group& g : token_groups) {
      state->groups.push_back({&job, g.first, g.tokens, x});
      x += packed_bytes(call, g.tokens);
    }
  }
  state->job_groups.push_back(state->groups.size());
  add_chunks(*state);
  state->partials = aligned_bytes(state->partial_floats * sizeof(float));

  const std::uint32_t slices = state->partial_floats < kParallelReduction ? 1 : static_cast<std::uint32_t>(call.threads);
  return std::make_shared<Task>(std::vector<Phase>{
      {1, [state](std::uint32_t) { for (const JobGroup& g : state->groups) pack_group(state->call, g); }},
      {static_cast<std::uint32_t>(state->chunks.size()),
       [state](std::uint32_t i) { state->run_chunk(state->chunks[i]); }},
      {slices,
       [state, slices](std::uint32_t i) {
         const std::size_t hidden = state->call.shape.hidden;
         state->reduce(hidden * i / slices, hidden * (i + 1) / slices);
       }},
  });
}

}  // namespace fiddler
