#include "pool.h"

#include <algorithm>
#include <utility>

#include "spin.h"

#if defined(_WIN32)
#include <process.h>
#else
#include <unistd.h>
#endif
#if defined(__linux__)
#include <pthread.h>
#include <sched.h>
#endif

namespace fiddler {
namespace {

// Between the native calls of a decode step lie some ten microseconds of Python. Waking a worker costs about
// 50 us on a virtual machine, so it spins over such gaps, and no longer: other programs, and the threads of
// torch, need the core. The starter model on two cores of a Xeon, ms per decoded token: 20.2 with 5 us, 18.9
// with 50, 18.5 with 150, 18.2 with 500 (within the noise).
constexpr std::chrono::microseconds kSpin{150};

long process_id() {
#if defined(_WIN32)
  return _getpid();
#else
  return static_cast<long>(getpid());
#endif
}

// A thread that may not be pinned, because a container forbids it or the CPU was taken offline, still works.
void pin_this_thread([[maybe_unused]] int cpu) {
#if defined(__linux__)
  if (cpu < 0) return;
  cpu_set_t* set = CPU_ALLOC(cpu + 1);
  if (set == nullptr) return;
  const std::size_t size = CPU_ALLOC_SIZE(cpu + 1);
  CPU_ZERO_S(size, set);
  CPU_SET_S(cpu, size, set);
  pthread_setaffinity_np(pthread_self(), size, set);
  CPU_FREE(set);
#endif
}

}  // namespace

Task* Slot::enter() {
  if ((state_.load(std::memory_order_relaxed) & kOpen) == 0) return nullptr;
  if ((state_.fetch_add(1, std::memory_order_acquire) & kOpen) == 0) {
    state_.fetch_sub(1, std::memory_order_release);
    return nullptr;
  }
  return task_.get();
}

void Slot::leave() {
  if ((state_.load(std::memory_order_relaxed) & kOpen) != 0) state_.fetch_and(~kOpen, std::memory_order_relaxed);
  state_.fetch_sub(1, std::memory_order_release);
}

void Slot::open(std::shared_ptr<Task> task) {
  task_ = std::move(task);
  // Added, not stored: a late thread may be about to count itself out again.
  state_.fetch_or(kOpen, std::memory_order_release);
}

Pool::Pool(int threads, std::vector<int> cpus)
    : threads_(threads),
      process_(process_id()),
      work_added_(std::make_unique<std::condition_variable>()),
      workers_(std::make_unique<std::vector<std::thread>>()) {
  try {
    for (int i = 1; i < threads; ++i) {
      const int cpu = static_cast<std::size_t>(i) < cpus.size() ? cpus[static_cast<std::size_t>(i)] : -1;
      workers_->emplace_back([this, cpu] {
        pin_this_thread(cpu);
        work();
      });
    }
  } catch (...) {  // the system gives no more threads: end those that did start
    close();
    throw;
  }
}

Pool::~Pool() { close(); }

void Pool::work() {
  std::size_t last = 0;
  for (;;) {
    const std::uint64_t seen = submitted_.load(std::memory_order_acquire);
    if (help_any(last)) continue;
    const auto news = [&] {
      return submitted_.load(std::memory_order_acquire) != seen || closing_.load(std::memory_order_acquire);
    };
    Spin spin(kSpin);
    while (!news() && spin.again()) {
    }
    if (!news()) {
      std::unique_lock<std::mutex> lock(mutex_);
      ++sleepers_;
      work_added_->wait(lock, news);
      --sleepers_;
    }
    // What was submitted before the pool was closed is done first.
    if (closing_.load(std::memory_order_acquire) && submitted_.load(std::memory_order_acquire) == seen) return;
  }
}

// Helps with one task, the one after `last` first, so that no slot is passed over for ever. Whether there was one.
bool Pool::help_any(std::size_t& last) {
  for (std::size_t i = 1; i <= kSlots; ++i) {
    const std::size_t slot = (last + i) % kSlots;
    if (Task* task = slots_[slot].enter()) {
      task->help();
      slots_[slot].leave();
      last = slot;
      return true;
    }
  }
  return queued_.load(std::memory_order_acquire) > 0 && place_queued();
}

// Under mutex_. Puts the task into a slot, and what was in that slot into `task`. Whether one was free.
bool Pool::place(std::shared_ptr<Task>& task) {
  for (Slot& slot : slots_) {
    if (!slot.idle()) continue;
    std::shared_ptr<Task> spent = slot.clear();
    slot.open(std::move(task));
    task = std::move(spent);
    return true;
  }
  return false;
}

// Takes a task from the queue, into a slot unless nothing of it is left to take. Whether it did.
bool Pool::place_queued() {
  std::shared_ptr<Task> task;  // what remains in it is freed after the lock
  std::lock_guard<std::mutex> lock(mutex_);
  if (queue_.empty()) return false;
  task = queue_.front();
  if (!task->exhausted() && !place(task)) return false;
  queue_.pop_front();
  queued_.store(queue_.size(), std::memory_order_release);
  submitted_.fetch_add(1, std::memory_order_release);
  return true;
}

void Pool::submit(std::shared_ptr<Task> task) {
  const std::uint32_t helpers = task->width() - std::min<std::uint32_t>(task->width(), 1);
  if (threads_ == 1 || helpers == 0) return;
  std::uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closing_.load(std::memory_order_relaxed)) return;
    if (!place(task)) {
      queue_.push_back(std::move(task));
      queued_.store(queue_.size(), std::memory_order_release);
    }
    submitted_.fetch_add(1, std::memory_order_release);
    sleepers = sleepers_;
  }
  // Each waking costs a system call: no more than can be of use.
  if (helpers >= sleepers) {
    if (sleepers > 0) work_added_->notify_all();
  } else {
    for (std::uint32_t i = 0; i < helpers; ++i) work_added_->notify_one();
  }
}

void Pool::finish(Task& task) {
  task.help();
  task.wait();
}

void Pool::close() {
  std::lock_guard<std::mutex> close_lock(close_mutex_);
  if (!workers_) return;
  if (process_ != process_id()) {
    // These threads exist only in the parent: joining or detaching them would fail, and a condition variable
    // waits for its sleepers before it goes.
    workers_.release();
    work_added_.release();
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_.store(true, std::memory_order_release);
    work_added_->notify_all();
  }
  for (std::thread& worker : *workers_) worker.join();
  workers_.reset();
  for (Slot& slot : slots_) slot.clear();
}

}  // namespace fiddler
