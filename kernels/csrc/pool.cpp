#include "pool.h"

#include <utility>

#include "spin.h"

#if defined(_WIN32)
#include <process.h>
#else
#include <unistd.h>
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

}  // namespace

Pool::Pool(int threads)
    : threads_(threads), process_(process_id()), workers_(std::make_unique<std::vector<std::thread>>()) {
  try {
    for (int i = 1; i < threads; ++i) workers_->emplace_back([this] { work(); });
  } catch (...) {  // the system gives no more threads: end those that did start
    close();
    throw;
  }
}

Pool::~Pool() { close(); }

std::shared_ptr<Task> Pool::next_task() {
  std::lock_guard<std::mutex> lock(mutex_);
  while (!queue_.empty() && queue_.front()->exhausted()) queue_.pop_front();
  return queue_.empty() ? nullptr : queue_.front();
}

void Pool::work() {
  for (;;) {
    const std::uint64_t seen = submitted_.load(std::memory_order_acquire);
    if (const std::shared_ptr<Task> task = next_task()) {
      task->help();
      continue;
    }
    if (closing_.load(std::memory_order_acquire)) return;
    const auto news = [&] {
      return submitted_.load(std::memory_order_acquire) != seen || closing_.load(std::memory_order_acquire);
    };
    Spin spin(kSpin);
    while (!news() && spin.again()) {
    }
    std::unique_lock<std::mutex> lock(mutex_);
    ++sleepers_;
    work_added_.wait(lock, news);
    --sleepers_;
  }
}

void Pool::submit(std::shared_ptr<Task> task) {
  if (threads_ == 1 || task->items() < 2) return;  // no worker, or nothing for it: all happens in finish()
  std::lock_guard<std::mutex> lock(mutex_);
  // Exhausted tasks hold their buffers until they are removed.
  while (!queue_.empty() && queue_.front()->exhausted()) queue_.pop_front();
  queue_.push_back(std::move(task));
  submitted_.fetch_add(1, std::memory_order_release);
  if (sleepers_ > 0) work_added_.notify_all();
}

void Pool::finish(Task& task) {
  task.help();
  task.wait();
}

void Pool::close() {
  std::lock_guard<std::mutex> close_lock(close_mutex_);
  if (!workers_) return;
  if (process_ != process_id()) {
    workers_.release();  // these threads exist only in the parent; joining or detaching them would fail
    return;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closing_.store(true, std::memory_order_release);
    work_added_.notify_all();
  }
  for (std::thread& worker : *workers_) worker.join();
  workers_.reset();
}

}  // namespace fiddler
