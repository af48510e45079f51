#include "task.h"

#include <utility>

#include "spin.h"

namespace fiddler {
namespace {

// The last items of a phase run for some ten microseconds; beyond that their thread was probably interrupted
// and needs a core, perhaps ours.
constexpr std::chrono::microseconds kSpin{100};

constexpr std::uint64_t cursor_at(std::uint64_t phase) { return phase << 32; }

}  // namespace

Task::Task(std::vector<Phase> phases) {
  for (Phase& phase : phases) {
    if (phase.items > 0) phases_.push_back(std::move(phase));
  }
  if (phases_.empty()) finished_ = true;
}

void Task::help() {
  Spin spin(kSpin);
  std::uint64_t cursor = cursor_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint64_t phase = cursor >> 32;
    if (phase == phases_.size()) return;
    const std::uint32_t item = static_cast<std::uint32_t>(cursor);
    const std::uint32_t items = phases_[phase].items;
    if (item >= items) {
      if (phase + 1 == phases_.size()) return;
      if (!spin.again()) std::this_thread::yield();
      cursor = cursor_.load(std::memory_order_acquire);
      continue;
    }
    if (!cursor_.compare_exchange_weak(cursor, cursor + 1, std::memory_order_acq_rel, std::memory_order_acquire)) {
      continue;
    }
    phases_[phase].run(item);
    if (done_.fetch_add(1, std::memory_order_acq_rel) + 1 == items) {
      done_.store(0, std::memory_order_relaxed);  // seen by all who see the new cursor
      cursor_.store(cursor_at(phase + 1), std::memory_order_release);
      if (phase + 1 == phases_.size()) finish();
    }
    cursor = cursor_.load(std::memory_order_acquire);
    spin = Spin(kSpin);
  }
}

bool Task::exhausted() const {
  const std::uint64_t cursor = cursor_.load(std::memory_order_acquire);
  const std::uint64_t phase = cursor >> 32;
  if (phase >= phases_.size()) return true;
  return phase + 1 == phases_.size() && static_cast<std::uint32_t>(cursor) >= phases_[phase].items;
}

void Task::finish() {
  std::lock_guard<std::mutex> lock(mutex_);
  finished_.store(true, std::memory_order_release);
  finished_changed_.notify_all();
}

void Task::wait() {
  Spin spin(kSpin);
  while (!finished_.load(std::memory_order_acquire)) {
    if (spin.again()) continue;
    std::unique_lock<std::mutex> lock(mutex_);
    finished_changed_.wait(lock, [this] { return finished_.load(std::memory_order_acquire); });
  }
}

std::uint32_t Task::items() const {
  std::uint32_t total = 0;
  for (const Phase& phase : phases_) total += phase.items;
  return total;
}

}  // namespace fiddler
