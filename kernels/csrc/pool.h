// Persistent threads that help with tasks.
#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "task.h"

namespace fiddler {

// A place where workers find a task without a lock. A task is put in while nobody is inside and the slot is
// closed; whoever entered while it was open keeps the task alive until it leaves, because the slot is not used
// again before all have left.
class alignas(64) Slot {
 public:
  // The task, which stays valid until leave(); null where there is none.
  Task* enter();
  // After enter(), once the task is exhausted: nobody else need come.
  void leave();

  // For one thread at a time: whether the slot is closed and empty, and what may be done only then.
  bool idle() const { return state_.load(std::memory_order_acquire) == 0; }
  void open(std::shared_ptr<Task> task);
  std::shared_ptr<Task> clear() { return std::move(task_); }

 private:
  static constexpr std::uint32_t kOpen = std::uint32_t{1} << 31;
  std::atomic<std::uint32_t> state_{0};  // kOpen, and the number of threads inside or about to turn back
  std::shared_ptr<Task> task_;
};

// `threads` counts the thread that waits for a task: it helps, so the pool starts one thread fewer. Workers
// spin for a moment after their last item and then sleep. All members may be called from several threads.
class Pool {
 public:
  // Worker i (from 1) is pinned to cpus[i] where there is such an entry, and the system can; cpus[0] is left to
  // the thread that calls, which is not pinned. Throws std::system_error where there are no more threads.
  explicit Pool(int threads, std::vector<int> cpus = {});
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  // Lets the workers begin. Where no second thread is of use the task begins in finish().
  void submit(std::shared_ptr<Task> task);
  // Helps with the task, then blocks until all of it has run.
  void finish(Task& task);
  // Ends the workers after the tasks that were submitted. A closed pool still finishes tasks, on the caller's
  // thread. In a process forked off the pool's own there are no workers: nothing is joined.
  void close();

 private:
  // More tasks than this at the same time wait in a queue.
  static constexpr std::size_t kSlots = 8;

  void work();
  bool help_any(std::size_t& last);
  bool place(std::shared_ptr<Task>& task);
  bool place_queued();

  const int threads_;
  const long process_;
  std::array<Slot, kSlots> slots_;
  // What spinning workers read. They change under mutex_.
  alignas(64) std::atomic<std::uint64_t> submitted_{0};
  std::atomic<std::size_t> queued_{0};  // size of queue_
  std::atomic<bool> closing_{false};
  alignas(64) std::mutex mutex_;
  std::deque<std::shared_ptr<Task>> queue_;  // under mutex_
  std::uint32_t sleepers_ = 0;               // under mutex_
  std::unique_ptr<std::condition_variable> work_added_;
  std::unique_ptr<std::vector<std::thread>> workers_;  // under close_mutex_
  std::mutex close_mutex_;
};

}  // namespace fiddler
