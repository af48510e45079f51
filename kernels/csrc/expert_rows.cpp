// The division of an expert call by rows of w2, for many tokens per expert: see expert_task.h.
#include <algorithm>
#include <optional>
#include <utility>

#include "expert_group.h"
#include "expert_tiles.h"

namespace fiddler {
namespace {

constexpr std::size_t kChunksPerThread = 8;  // an interrupted thread delays the end by one chunk at most
constexpr std::size_t kRowChunksPerThread = 2;  // fewer: each reads the neurons of all tokens again
constexpr std::size_t kSegmentTokens = 256;  // tokens that share one reading, and expansion, of a panel
constexpr std::size_t kNeuronBytes = std::size_t{64} << 20;  // of one pass, about; bounds the memory of a call
// What a panel costs beside its tokens' arithmetic, in tokens: its way from memory.
constexpr std::size_t kPanelCost = 32;

// Tokens of one job that pass through the expert together.
struct Segment {
  GroupSpan span;
  std::size_t cost() const { return span.job().panels() * (span.tokens + kPanelCost); }
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

  // Where a group's neurons of its job's panel `panel`, counted from the job's first, are.
  std::byte* group_neurons(const JobGroup& g, std::size_t panel) const {
    const auto index = static_cast<std::size_t>(&g - groups.data());
    return neurons.get() + neuron_offsets[index] + panel * g.tokens * g.way.activation_bytes();
  }
  void run_chunk(const Chunk& chunk) const;
  void run_rows(const Pass& pass, std::size_t first_row, std::size_t end_row) const;
  void multiply_rows(const GroupSpan& span, std::size_t first_row, std::size_t end_row, float* products) const;
};

void RowState::run_chunk(const Chunk& chunk) const {
  const GroupSpan& span = chunk.segment->span;
  const std::size_t step = span.way().blocked ? kBlockPanels : 1;
  for (std::size_t first = chunk.first_panel; first < chunk.end_panel; first += step) {
    run_neurons(call, span, first, std::min(first + step, chunk.end_panel), [&](std::size_t g, std::size_t p) {
      return static_cast<void*>(group_neurons(span.begin[g], first + p - span.job().first_panel));
    });
  }
}

// Row tiles [first_row, end_row) of w2 with all tokens of a segment: products[token][row tile][16].
void RowState::multiply_rows(const GroupSpan& span, std::size_t first_row, std::size_t end_row,
                             float* products) const {
  const ExpertJob& job = span.job();
  Workspace& workspace = Workspace::of_thread();
  std::vector<Operand>& operands = workspace.operands(span.count());
  const std::size_t stride = (end_row - first_row) * kTileRows;
  const std::size_t step = span.way().blocked ? kBlockTiles : job.panels();
  const auto tiles = [&](std::size_t panel, std::size_t row) {
    return down_tiles(call.shape, job.block, panel, std::min(step, job.end_panel - panel), row,
                      std::min(kBlockRows, end_row - row));
  };
  for (std::size_t panel = job.first_panel; panel < job.end_panel; panel += step) {
    for (std::size_t row = first_row; row < end_row; row += kBlockRows) {
      float* c = products + (row - first_row) * kTileRows;
      for (std::size_t g = 0; g < span.count(); ++g) {
        operands[g] = {group_neurons(span.begin[g], panel - job.first_panel), span.begin[g].tokens, c, kTileRows,
                       stride};
        c += span.begin[g].tokens * stride;
      }
      std::optional<Tiles> next;
      if (row + kBlockRows < end_row) {
        next = tiles(panel, row + kBlockRows);
      } else if (panel + step < job.end_panel) {
        next = tiles(panel + step, first_row);
      }
      multiply(span.way(), tiles(panel, row), operands.data(), operands.size(), panel > job.first_panel,
               next ? &*next : nullptr, workspace.scratch());
    }
  }
}

void RowState::run_rows(const Pass& pass, std::size_t first_row, std::size_t end_row) const {
  const std::size_t column = first_row * kTileRows;
  if (column >= call.shape.hidden) return;  // padding
  const std::size_t stride = (end_row - first_row) * kTileRows;
  const std::size_t columns = std::min(stride, call.shape.hidden - column);
  for (std::size_t s = pass.first_segment; s < pass.end_segment; ++s) {
    const GroupSpan& span = segments[s].span;
    float* products = Workspace::of_thread().products(span.tokens * stride);
    multiply_rows(span, first_row, end_row, products);
    for (std::size_t i = 0; i < span.tokens; ++i) {
      const std::size_t entry = span.begin->first + i;
      const auto token = static_cast<std::size_t>(span.job().tokens[entry]);
      add_scaled(call.out + token * call.shape.hidden + column, products + i * stride, span.job().weights[entry],
                 columns);
    }
  }
}

void add_segments(RowState& state) {
  const ExpertCall& call = state.call;
  std::vector<Group> parts, token_groups;
  std::vector<std::size_t> ends;  // of the segments, in groups
  for (const ExpertJob& job : call.jobs) {
    const Way way = choose_way(call.kernels, call.tuning, call.shape.format, job.count);
    parts.clear();
    add_groups(parts, 0, job.count, kSegmentTokens);
    for (const Group& part : parts) {
      token_groups.clear();
      add_groups(token_groups, part.first, part.tokens, way.group_tokens);
      for (const Group& g : token_groups) {
        state.groups.push_back({&job, way, g.first, g.tokens, nullptr});
      }
      ends.push_back(state.groups.size());
    }
  }
  state.packed = place_activations(call.shape, state.groups);
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    std::size_t tokens = 0;
    for (std::size_t i = begin; i < end; ++i) tokens += state.groups[i].tokens;
    state.segments.push_back({{state.groups.data() + begin, state.groups.data() + end, tokens}});
    begin = end;
  }
}

// Cuts the segments into passes, places their neurons, and allocates for the largest pass.
void add_passes(RowState& state) {
  state.neuron_offsets.resize(state.groups.size());
  std::size_t used = 0, most = 0;
  for (std::size_t s = 0; s < state.segments.size(); ++s) {
    const GroupSpan& span = state.segments[s].span;
    const std::size_t token_bytes = span.job().panels() * span.way().activation_bytes();
    if (s == 0 || used + span.tokens * token_bytes > kNeuronBytes) {
      state.passes.push_back({s, s});
      used = 0;
    }
    state.passes.back().end_segment = s + 1;
    for (const JobGroup* g = span.begin; g != span.end; ++g) {
      state.neuron_offsets[static_cast<std::size_t>(g - state.groups.data())] = used;
      used += g->tokens * token_bytes;
    }
    most = std::max(most, used);
  }
  state.neurons = aligned_bytes(most);
}

// Chunks of about equal work: a segment with more tokens is cut into more pieces.
std::vector<Chunk> pass_chunks(const RowState& state, const Pass& pass) {
  std::size_t cost = 0;
  for (std::size_t s = pass.first_segment; s < pass.end_segment; ++s) cost += state.segments[s].cost();
  const std::size_t wanted = static_cast<std::size_t>(state.call.threads) * kChunksPerThread;
  std::vector<Chunk> chunks;
  for (std::size_t s = pass.first_segment; s < pass.end_segment; ++s) {
    const ExpertJob& job = state.segments[s].span.job();
    const std::size_t share = (2 * wanted * state.segments[s].cost() + cost) / (2 * cost);  // rounded
    const std::size_t pieces = std::min(job.panels(), std::max<std::size_t>(1, share));
    for (std::size_t i = 0; i < pieces; ++i) {
      chunks.push_back({&state.segments[s], job.first_panel + job.panels() * i / pieces,
                        job.first_panel + job.panels() * (i + 1) / pieces});
    }
  }
  return chunks;
}

}  // namespace

std::shared_ptr<Task> make_row_task(ExpertCall c) {
  auto state = std::make_shared<RowState>(std::move(c));
  add_segments(*state);
  add_passes(*state);

  std::vector<Phase> phases;
  phases.push_back({static_cast<std::uint32_t>(state->groups.size()),
                    [state](std::uint32_t i) { pack_group(state->call, state->groups[i]); }});
  const std::size_t rows = state->call.shape.down_row_tiles();
  const std::size_t pieces =
      std::min(rows, static_cast<std::size_t>(state->call.threads) * kRowChunksPerThread);
  for (std::size_t p = 0; p < state->passes.size(); ++p) {
    state->chunks.push_back(pass_chunks(*state, state->passes[p]));
    phases.push_back({static_cast<std::uint32_t>(state->chunks[p].size()),
                      [state, p](std::uint32_t i) { state->run_chunk(state->chunks[p][i]); }});
    phases.push_back({static_cast<std::uint32_t>(pieces), [state, p, rows, pieces](std::uint32_t i) {
                        state->run_rows(state->passes[p], rows * i / pieces, rows * (i + 1) / pieces);
                      }});
  }
  return std::make_shared<Task>(std::move(phases));
}

}  // namespace fiddler
