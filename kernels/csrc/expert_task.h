// The experts of one layer, as one task.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernel.h"
#include "layout.h"
#include "multiply.h"
#include "task.h"

namespace fiddler {

// One expert, or some of its panels, and the tokens that chose it.
struct ExpertJob {
  const std::uint8_t* block;     // the packed expert
  const std::int32_t* tokens;    // rows of x and out; a row may occur more than once
  const float* weights;          // routing weight of each
  std::size_t count;             // may be 0
  std::size_t first_panel;       // the share of the expert: panels [first_panel, end_panel)
  std::size_t end_panel;

  std::size_t panels() const { return end_panel - first_panel; }
};

// What all jobs of a call share.
struct ExpertCall {
  const Kernels& kernels;
  Tuning tuning;
  int threads;
  ExpertShape shape;
  const float* x;  // [any, hidden]
  float* out;      // [any, hidden], added to
  std::vector<ExpertJob> jobs;
};

// out[token] += weight * w2 (silu(w1 x[token]) * w3 x[token]) for every token of every job, summed over the job's
// panels. All memory of the call must stay valid until the task is finished; token indices are not checked here.
//
// Results depend on the call and on `threads`, not on which thread ran what. Two ways to divide the work:
// few tokens per expert by panels (make_panel_task), many by rows (make_row_task).
std::shared_ptr<Task> make_expert_task(ExpertCall call);

// Chunks of (expert, range of panels), each with a partial output; no barrier between the matrix products.
// The partials are added in the order of the chunks.
std::shared_ptr<Task> make_panel_task(ExpertCall call);

// First all neurons, divided by panels, then all outputs, divided by rows of w2: no partial outputs, whose
// reading and writing would cost more than the barrier once there are many tokens.
std::shared_ptr<Task> make_row_task(ExpertCall call);

}  // namespace fiddler
