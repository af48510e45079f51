#include "expert_task.h"

#include <algorithm>
#include <utility>

namespace fiddler {

std::shared_ptr<Task> make_expert_task(ExpertCall call) {
  auto& jobs = call.jobs;
  const auto idle = [](const ExpertJob& job) { return job.count == 0 || job.panels() == 0; };
  jobs.erase(std::remove_if(jobs.begin(), jobs.end(), idle), jobs.end());
  if (jobs.empty()) return std::make_shared<Task>(std::vector<Phase>{});
  std::size_t most = 0;
  for (const ExpertJob& job : jobs) most = std::max(most, job.count);
  return most <= call.tuning.panel_tokens ? make_panel_task(std::move(call)) : make_row_task(std::move(call));
}

}  // namespace fiddler
