// What both divisions of an expert call have in common: packed activations and the first half of an expert.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "aligned.h"
#include "expert_task.h"
#include "groups.h"

namespace fiddler {

// Panels whose neurons are computed together when several groups of tokens share them: a block of activations is
// then read once for all of them.
constexpr std::size_t kBlockPanels = 4;

// Some tokens of one job: entries [first, first + tokens) of its lists.
struct JobGroup {
  const ExpertJob* job;
  Way way;
  std::size_t first;
  std::size_t tokens;
  std::byte* x;  // their packed activations
};

// Groups of one job that go through the expert together, all the same way.
struct GroupSpan {
  const JobGroup* begin;
  const JobGroup* end;
  std::size_t tokens;

  const Way& way() const { return begin->way; }
  const ExpertJob& job() const { return *begin->job; }
  std::size_t count() const { return static_cast<std::size_t>(end - begin); }
};

// Memory of one thread, kept between calls.
struct Workspace {
  std::byte* scratch();                       // kScratchBytes
  float* products(std::size_t floats);        // valid until the next call
  std::byte* neurons(std::size_t bytes);      // likewise
  std::vector<Operand>& operands(std::size_t count);

  static Workspace& of_thread();

 private:
  GrowingBytes scratch_, products_, neurons_;
  std::vector<Operand> operands_;
};

// Memory for the packed activations of all groups; sets where each group's are: from a cache line's start on.
AlignedBytes place_activations(const ExpertShape& shape, std::vector<JobGroup>& groups);
void pack_group(const ExpertCall& call, const JobGroup& group);

// The products of w1 and w3 of panels [first_panel, end_panel): products[panel][group][4 row tiles][token][16].
void multiply_gate_up(const ExpertCall& call, const GroupSpan& span, std::size_t first_panel,
                      std::size_t end_panel, float* products);

// The neurons of panels [first_panel, end_panel) (kBlockPanels at most where the way is blocked, else one), packed
// as activations for their w2 columns: group g's of the panel p go to place(g, p - first_panel).
template <class Place>
void run_neurons(const ExpertCall& call, const GroupSpan& span, std::size_t first_panel, std::size_t end_panel,
                 const Place& place) {
  const std::size_t panel_floats = kPanelGateUpTiles * kTileRows * span.tokens;
  float* products = Workspace::of_thread().products((end_panel - first_panel) * panel_floats);
  multiply_gate_up(call, span, first_panel, end_panel, products);
  for (std::size_t p = 0; p < end_panel - first_panel; ++p) {
    const float* from = products + p * panel_floats;
    for (std::size_t g = 0; g < span.count(); ++g) {
      span.way().product->swiglu(from, span.begin[g].tokens, place(g, p));
      from += kPanelGateUpTiles * kTileRows * span.begin[g].tokens;
    }
  }
}

// out[0, columns) += weight * from[0, columns). A sum that overflowed counts as the largest number: two infinities
// of different sign would make a NaN. A NaN stays one.
inline void add_scaled(float* out, const float* from, float weight, std::size_t columns) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (std::size_t c = 0; c < columns; ++c) {
    const float above = from[c] < -kLargest ? -kLargest : from[c];
    out[c] += weight * (above > kLargest ? kLargest : above);
  }
}

}  // namespace fiddler
