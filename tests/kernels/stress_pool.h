// Checks of the pool and its tasks alone: every item runs once and in its phase, and cancelling skips the rest.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>
#include <random>
#include <thread>
#include <vector>

#include "pool.h"

namespace fiddler {

inline int expect(bool holds, const char* what) {
  if (!holds) std::printf("failed: %s\n", what);
  return holds ? 0 : 1;
}

// A task that records how often each of its items ran, and whether an item ran before the phase before had ended.
struct Recorded {
  std::vector<std::vector<std::atomic<int>>> runs;
  std::atomic<bool> early{false};
  std::shared_ptr<Task> task;

  explicit Recorded(const std::vector<std::uint32_t>& widths) {
    for (std::uint32_t width : widths) runs.emplace_back(width);
    std::vector<Phase> phases;
    for (std::size_t p = 0; p < runs.size(); ++p) {
      phases.push_back({static_cast<std::uint32_t>(runs[p].size()), [this, p](std::uint32_t i) {
                          if (p > 0) {
                            for (const auto& count : runs[p - 1]) {
                              if (count.load(std::memory_order_relaxed) == 0) early = true;
                            }
                          }
                          runs[p][i].fetch_add(1, std::memory_order_relaxed);
                        }});
    }
    task = std::make_shared<Task>(std::move(phases));
  }

  int total() const {
    int sum = 0;
    for (const auto& phase : runs) {
      for (const auto& count : phase) sum += count;
    }
    return sum;
  }
  bool each_once() const {
    for (const auto& phase : runs) {
      for (const auto& count : phase) {
        if (count != 1) return false;
      }
    }
    return !early;
  }
};

// More tasks than the pool has slots, waited for in another order than they were submitted.
inline int use_many_tasks(Pool& pool, std::mt19937& random) {
  int failures = 0;
  std::vector<std::unique_ptr<Recorded>> all;
  for (int i = 0; i < 40; ++i) {
    const auto width = [&](std::uint32_t most) { return static_cast<std::uint32_t>(random() % most); };
    all.push_back(std::make_unique<Recorded>(std::vector<std::uint32_t>{width(3), width(50), width(5), width(2)}));
  }
  for (auto& recorded : all) pool.submit(recorded->task);
  for (std::size_t i = all.size(); i-- > 0;) pool.finish(*all[i]->task);
  for (auto& recorded : all) failures += expect(recorded->each_once(), "every item runs once, in its phase");
  return failures;
}

inline int cancel_before_start_and_after_end(Pool& pool) {
  Recorded never({20, 1, 30}), done({20, 1, 30});
  never.task->cancel();
  pool.submit(never.task);
  pool.finish(*never.task);
  pool.submit(done.task);
  pool.finish(*done.task);
  done.task->cancel();
  pool.finish(*done.task);
  return expect(never.total() == 0, "nothing of a cancelled task runs") +
         expect(done.each_once(), "cancelling after the end changes nothing");
}

// Items run until the cancelling, which comes from another thread: only those that had begun may have run.
inline int cancel_in_the_middle(Pool& pool) {
  std::atomic<int> begun{0}, ended{0}, later{0};
  std::atomic<bool> cancelled{false};
  const auto task = std::make_shared<Task>(std::vector<Phase>{
      {1000,
       [&](std::uint32_t) {
         ++begun;
         while (!cancelled) std::this_thread::yield();
         ++ended;
       }},
      {10, [&](std::uint32_t) { ++later; }},
  });
  pool.submit(task);
  std::thread other([&] {
    while (begun == 0) std::this_thread::yield();
    task->cancel();
    cancelled = true;
  });
  pool.finish(*task);
  other.join();
  return expect(begun <= pool.threads() && begun == ended, "running items end, others do not begin") +
         expect(later == 0, "phases after the cancelling are skipped");
}

// An item that gets no memory ends its task with the exception for whoever waits, and the pool goes on.
inline int run_out_of_memory(Pool& pool) {
  std::atomic<int> later{0};
  const auto task = std::make_shared<Task>(std::vector<Phase>{
      {64, [](std::uint32_t i) { if (i == 40) throw std::bad_alloc(); }},
      {10, [&](std::uint32_t) { ++later; }},
  });
  pool.submit(task);
  int told = 0;
  for (int i = 0; i < 2; ++i) {
    try {
      pool.finish(*task);
    } catch (const std::bad_alloc&) {
      ++told;
    }
  }
  return expect(told == 2, "who waits is told that memory ran out") +
         expect(later == 0, "nothing goes on without memory");
}

// A pool is closed over tasks that are queued, cancelled and unfinished; all can be finished afterwards.
inline int close_over_tasks(int threads) {
  int failures = 0;
  std::vector<std::unique_ptr<Recorded>> all;
  Pool pool(threads);
  for (int i = 0; i < 30; ++i) {
    all.push_back(std::make_unique<Recorded>(std::vector<std::uint32_t>{8, 1, 8}));
    pool.submit(all.back()->task);
    if (i % 3 == 0) all.back()->task->cancel();
  }
  pool.close();
  for (std::size_t i = 0; i < all.size(); ++i) {
    pool.submit(all[i]->task);  // a closed pool leaves it to finish()
    pool.finish(*all[i]->task);
    if (i % 3 != 0) failures += expect(all[i]->each_once(), "a closed pool finishes what it got");
  }
  return failures;
}

// Sleeping workers are woken as needed, also by a task for few of them.
inline int wake_sleepers(Pool& pool) {
  int failures = 0;
  for (std::uint32_t width : {2u, 1u, 3u, 64u}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Recorded recorded({width, 1, width});
    pool.submit(recorded.task);
    pool.finish(*recorded.task);
    failures += expect(recorded.each_once(), "a sleeping pool does a task");
  }
  return failures;
}

inline int use_pool(Pool& pool, unsigned seed) {
  std::mt19937 random(seed);
  int failures = 0;
  for (int round = 0; round < 10; ++round) {
    failures += use_many_tasks(pool, random);
    failures += cancel_before_start_and_after_end(pool);
    failures += cancel_in_the_middle(pool);
    failures += run_out_of_memory(pool);
  }
  return failures + wake_sleepers(pool) + close_over_tasks(pool.threads());
}

}  // namespace fiddler
