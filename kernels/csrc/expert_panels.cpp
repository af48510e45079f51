// The division of an expert call by panels, for few tokens per expert: see expert_task.h.
#include <algorithm>
#include <utility>

#include "expert_group.h"
#include "expert_tiles.h"

namespace fiddler {
namespace {

constexpr std::size_t kChunksPerThread = 8;  // an interrupted thread delays the end by one chunk at most
// Adding the partials is worth a second thread from this many of their floats on (about 20 us of adding).
constexpr std::size_t kParallelReduction = 128 * 1024;
constexpr std::size_t kDownRows = 16;  // row tiles of w2 in one block: with kBlockPanels k tiles, kScratchBytes
static_assert(kDownRows * kBlockPanels * kTileBytes <= kScratchBytes, "a block of w2 fits the scratch memory");

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
  std::vector<GroupSpan> spans;  // of every job
  std::vector<Chunk> chunks;
  AlignedBytes packed;
  AlignedBytes partials;
  std::size_t partial_floats = 0;

  void run_chunk(const Chunk& chunk) const;
  void run_down(const Chunk& chunk, std::size_t first_panel, std::size_t panels, const std::byte* neurons) const;
  void reduce(std::size_t first_column, std::size_t end_column) const;
  float* partial(const Chunk& chunk) const { return reinterpret_cast<float*>(partials.get()) + chunk.partial; }
};

void PanelState::run_chunk(const Chunk& chunk) const {
  const GroupSpan& span = spans[chunk.job];
  const std::size_t step = span.way().blocked ? kBlockPanels : 1;
  const std::size_t neuron_bytes = span.way().activation_bytes();
  std::byte* neurons = Workspace::of_thread().neurons(step * span.tokens * neuron_bytes);
  for (std::size_t p = chunk.first_panel; p < chunk.end_panel; p += step) {
    const std::size_t panels = std::min(step, chunk.end_panel - p);
    run_neurons(call, span, p, p + panels, [&](std::size_t g, std::size_t panel) -> void* {
      const std::size_t before = span.begin[g].first - span.begin->first;
      return neurons + (before * panels + panel * span.begin[g].tokens) * neuron_bytes;
    });
    run_down(chunk, p, panels, neurons);
  }
}

// Adds (or, for the chunk's first panels, sets) what some panels give to the chunk's partial output.
void PanelState::run_down(const Chunk& chunk, std::size_t first_panel, std::size_t panels,
                          const std::byte* neurons) const {
  const ExpertShape& shape = call.shape;
  const GroupSpan& span = spans[chunk.job];
  Workspace& workspace = Workspace::of_thread();
  std::vector<Operand>& operands = workspace.operands(span.count());
  const std::size_t step = span.way().blocked ? kDownRows : shape.down_row_tiles();
  const auto tiles = [&](std::size_t row) {
    const std::size_t rows = std::min(step, shape.down_row_tiles() - row);
    return down_tiles(shape, span.job().block, first_panel, panels, row, rows);
  };
  for (std::size_t row = 0; row < shape.down_row_tiles(); row += step) {
    for (std::size_t g = 0; g < span.count(); ++g) {
      const std::size_t before = span.begin[g].first - span.begin->first;
      operands[g] = {neurons + before * panels * span.way().activation_bytes(), span.begin[g].tokens,
                     partial(chunk) + before * shape.padded_hidden() + row * kTileRows, kTileRows,
                     shape.padded_hidden()};
    }
    const Tiles next = tiles(std::min(row + step, shape.down_row_tiles() - 1));
    multiply(span.way(), tiles(row), operands.data(), operands.size(), first_panel != chunk.first_panel, &next,
             workspace.scratch());
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

// About the same number of panels in each, and about kChunksPerThread for each thread: with many more or fewer
// per thread than a whole number, the last round would leave threads idle.
void add_chunks(PanelState& state) {
  std::size_t panels = 0;
  for (const ExpertJob& job : state.call.jobs) panels += job.panels();
  const std::size_t wanted = static_cast<std::size_t>(state.call.threads) * kChunksPerThread;
  for (std::size_t j = 0; j < state.call.jobs.size(); ++j) {
    const ExpertJob& job = state.call.jobs[j];
    const std::size_t share = (2 * wanted * job.panels() + panels) / (2 * panels);  // rounded
    const std::size_t pieces = std::min(job.panels(), std::max<std::size_t>(1, share));
    for (std::size_t i = 0; i < pieces; ++i) {
      state.chunks.push_back({j, job.first_panel + job.panels() * i / pieces,
                              job.first_panel + job.panels() * (i + 1) / pieces, state.partial_floats});
      state.partial_floats += job.count * state.call.shape.padded_hidden();
    }
  }
}

void add_groups_and_spans(PanelState& state) {
  const ExpertCall& call = state.call;
  std::vector<std::size_t> ends;
  std::vector<Group> token_groups;
  for (const ExpertJob& job : call.jobs) {
    const Way way = choose_way(call.kernels, call.tuning, call.shape.format, job.count);
    token_groups.clear();
    add_groups(token_groups, 0, job.count, way.group_tokens);
    for (const Group& g : token_groups) {
      state.groups.push_back({&job, way, g.first, g.tokens, nullptr});
    }
    ends.push_back(state.groups.size());
  }
  state.packed = place_activations(call.shape, state.groups);
  std::size_t begin = 0;
  for (std::size_t j = 0; j < call.jobs.size(); begin = ends[j++]) {
    state.spans.push_back({state.groups.data() + begin, state.groups.data() + ends[j], call.jobs[j].count});
  }
}

}  // namespace

std::shared_ptr<Task> make_panel_task(ExpertCall c) {
  auto state = std::make_shared<PanelState>(std::move(c));
  add_groups_and_spans(*state);
  add_chunks(*state);
  state->partials = aligned_bytes(state->partial_floats * sizeof(float));

  const auto threads = static_cast<std::uint32_t>(state->call.threads);
  const std::uint32_t slices = state->partial_floats < kParallelReduction ? 1 : threads;
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
