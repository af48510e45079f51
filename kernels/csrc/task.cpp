#include "task.h"

#include <algorithm>
#include <new>
#include <utility>

#include "spin.h"

namespace fiddler {
namespace {

// The last items of a phase run for some ten microseconds; beyond that their thread was probably interrupted
// and needs a core, perhaps ours.
constexpr std::chrono::microseconds kSpin{100};

constexpr std::uint64_t cursor_at(std::uint64_t phase) { return phase << 32; }
constexpr std::uint64_t phase_of(std::uint64_t cursor) { return cursor >> 32; }
constexpr std::uint32_t item_of(std::uint64_t cursor) { return static_cast<std::uint32_t>(cursor); }

}  // namespace

Task::Task(std::vector<Phase> phases) : changed_(std::make_unique<std::condition_variable>()) {
  for (Phase& phase : phases) {
    if (phase.items > 0) phases_.push_back(std::move(phase));
  }
}

Task::~Task() {
  // Sleepers hold the task. If there still are some, this process is a fork and they exist only in its parent: a
  // condition variable would wait for them.
  if (sleepers_.load() != 0) static_cast<void>(changed_.release());
}

void Task::help() {
  const std::uint64_t end = phases_.size();
  for (;;) {
    std::uint64_t cursor = cursor_.load(std::memory_order_acquire);
    std::uint64_t phase = phase_of(cursor);
    if (phase == end) return;
    if (item_of(cursor) >= phases_[phase].items) {
      if (phase + 1 == end) return;
      wait_until([&] { return phase_of(cursor_.load()) > phase; });
      continue;
    }
    // Meanwhile others may have taken the last item, or even begun the next phase: what counts is what we got.
    cursor = cursor_.fetch_add(1, std::memory_order_acq_rel);
    phase = phase_of(cursor);
    if (phase == end || item_of(cursor) >= phases_[phase].items) continue;
    // Who skips items of a phase does so before its end, so nobody runs items of a later one: they see the flag.
    if (!cancelled_.load(std::memory_order_relaxed)) run(phases_[phase], item_of(cursor));
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == phases_[phase].items) {
      done_.store(0, std::memory_order_relaxed);  // seen by all who see the new cursor
      begin_phase(phase + 1);
      if (phase + 1 == end) {  // no item is left to anybody; late threads look at the counts only
        for (Phase& p : phases_) p.run = nullptr;
      }
    }
  }
}

void Task::run(const Phase& phase, std::uint32_t item) {
  try {
    phase.run(item);
  } catch (const std::bad_alloc&) {  // on a worker nobody could catch it; wait() throws it again
    out_of_memory_.store(true, std::memory_order_relaxed);
    cancel();
  }
}

void Task::begin_phase(std::uint64_t phase) {
  cursor_.store(cursor_at(phase));
  // Sequentially consistent, like the sleeper's steps in the other order: either it sees the cursor, or we see it.
  if (sleepers_.load() == 0) return;
  std::lock_guard<std::mutex> lock(mutex_);
  changed_->notify_all();
}

template <class Ready>
void Task::wait_until(Ready ready) {
  Spin spin(kSpin);
  while (!ready()) {
    if (spin.again()) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    sleepers_.fetch_add(1);
    changed_->wait(lock, ready);
    sleepers_.fetch_sub(1);
  }
}

void Task::cancel() { cancelled_.store(true, std::memory_order_relaxed); }

bool Task::exhausted() const {
  const std::uint64_t cursor = cursor_.load(std::memory_order_acquire);
  const std::uint64_t phase = phase_of(cursor);
  return phase == phases_.size() || (phase + 1 == phases_.size() && item_of(cursor) >= phases_[phase].items);
}

void Task::wait() {
  wait_until([this] { return phase_of(cursor_.load()) == phases_.size(); });
  if (out_of_memory_.load(std::memory_order_relaxed)) throw std::bad_alloc();
}

std::uint32_t Task::width() const {
  std::uint32_t most = 0;
  for (const Phase& phase : phases_) most = std::max(most, phase.items);
  return most;
}

}  // namespace fiddler
