// Persistent threads that help with tasks.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "task.h"

namespace fiddler {

// `threads` counts the thread that waits for a task: it helps, so the pool starts one thread fewer. Workers
// spin for a moment after their last item and then sleep. All members may be called from several threads.
class Pool {
 public:
  explicit Pool(int threads);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  int threads() const { return threads_; }
  // Lets the workers begin. Without workers the task begins in finish().
  void submit(std::shared_ptr<Task> task);
  // Helps with the task, then blocks until all of it has run.
  void finish(Task& task);
  // Ends the workers after the tasks that were submitted. A closed pool still finishes tasks, on the caller's
  // thread. In a process forked off the pool's own there are no workers: nothing is joined.
  void close();

 private:
  void work();
  std::shared_ptr<Task> next_task();

  const int threads_;
  const long process_;
  std::mutex mutex_;
  std::condition_variable work_added_;
  std::deque<std::shared_ptr<Task>> queue_;      // under mutex_
  int sleepers_ = 0;                             // under mutex_
  std::atomic<std::uint64_t> submitted_{0};      // changes under mutex_; read without it while spinning
  std::atomic<bool> closing_{false};             // likewise
  std::unique_ptr<std::vector<std::thread>> workers_;  // under close_mutex_
  std::mutex close_mutex_;
};

}  // namespace fiddler
