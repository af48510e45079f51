#include "expert_task.h"

#include <algorithm>
#include <utility>

namespace fiddler {
namespace {

// Above this many tokens for one expert the partial outputs of the division by panels cost too much.
constexpr std::size_t kPanelTokens = 16;

}  // namespace

std::shared_ptr<Task> make_expert_task(ExpertCall call) {
  auto& jobs = call.jobs;
  jobs.erase(std::remove_if(jobs.begin(), jobs.end(), [](const ExpertJob& job) { return job.count == 0; }),
             jobs.end());
  if (jobs.empty()) return std::make_shared<Task>(std::vector<Phase>{});
  std::size_t most = 0;
  for (const ExpertJob& job : jobs) most = std::max(most, job.count);
  return most <= kPanelTokens ? make_panel_task(std::move(call)) : make_row_task(std::move(call));
}

}  // namespace fiddler
