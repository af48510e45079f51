// A piece of work for several threads: phases of items, each phase after the one before.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace fiddler {

// The items of a phase may run in any order, on any thread, at the same time; they must not throw. Any number
// of threads call help(); the work does not depend on which of them takes an item.
struct Phase {
  std::uint32_t items;
  std::function<void(std::uint32_t)> run;
};

class Task {
 public:
  // Phases without items are left out.
  explicit Task(std::vector<Phase> phases);

  // Runs items until none is left to take; items taken by other threads may still be running then.
  void help();
  // Nothing is left to take.
  bool exhausted() const;
  // Blocks until every item has run. Does not help.
  void wait();
  // Items in all phases: with one or none, a second thread has nothing to do.
  std::uint32_t items() const;

 private:
  void finish();

  std::vector<Phase> phases_;
  // Phase in the upper, next item in the lower half; one word, so that a late thread cannot take an item of
  // the next phase by the count of this one.
  std::atomic<std::uint64_t> cursor_{0};
  std::atomic<std::uint32_t> done_{0};  // items of the current phase that have run
  std::atomic<bool> finished_{false};
  std::mutex mutex_;
  std::condition_variable finished_changed_;
};

}  // namespace fiddler
