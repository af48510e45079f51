// A piece of work for several threads: phases of items, each phase after the one before.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

namespace fiddler {

// The items of a phase may run in any order, on any thread, at the same time; all they may throw is
// std::bad_alloc. Any number of threads call help(); the work does not depend on which of them takes an item.
struct Phase {
  std::uint32_t items;
  std::function<void(std::uint32_t)> run;
};

class Task {
 public:
  // Phases without items are left out. A finished task holds nothing of what its phases captured.
  explicit Task(std::vector<Phase> phases);
  ~Task();

  // Runs items until none is left to take; items taken by other threads may still be running then.
  void help();
  // Items that have not begun will not run: they count as done. What the task writes is undefined from then on.
  // Returns at once; after wait() nothing of the task runs. No effect on a task that is finished.
  void cancel();
  // Nothing is left to take.
  bool exhausted() const;
  // Blocks until every item has run or was skipped. Does not help. Throws std::bad_alloc where an item did: the
  // others were skipped then, as by cancel().
  void wait();
  // Items of the widest phase: as many threads as that can be of use.
  std::uint32_t width() const;

 private:
  template <class Ready>
  void wait_until(Ready ready);
  void begin_phase(std::uint64_t phase);
  void run(const Phase& phase, std::uint32_t item);

  std::vector<Phase> phases_;
  // Phase in the upper, next item in the lower half; one word, so that a late thread cannot take an item of the
  // next phase by the count of this one. Threads that find no item left may have counted beyond the last.
  // Each word has a cache line of its own: threads that wait read the cursor while others count what is done.
  alignas(64) std::atomic<std::uint64_t> cursor_{0};
  alignas(64) std::atomic<std::uint32_t> done_{0};  // items of the current phase that have run
  alignas(64) std::atomic<bool> cancelled_{false};
  std::atomic<bool> out_of_memory_{false};
  std::atomic<int> sleepers_{0};  // threads in changed_
  std::mutex mutex_;
  std::unique_ptr<std::condition_variable> changed_;  // the cursor entered another phase
};

}  // namespace fiddler
