// Waiting by spinning: short waits cost no system call, long ones give the core away.
#pragma once

#include <chrono>
#include <thread>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#endif

namespace fiddler {

inline void pause_core() {
#if defined(__x86_64__) || defined(_M_X64)
  _mm_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  __asm__ volatile("yield");
#endif
}

class Spin {
 public:
  explicit Spin(std::chrono::microseconds limit) : limit_(limit) {}

  // Pauses for some 0.1 us; false once the limit is over.
  bool again() {
    for (int i = 0; i < 4; ++i) pause_core();
    const auto now = std::chrono::steady_clock::now();
    if (!started_) {
      started_ = true;
      end_ = now + limit_;
    }
    return now < end_;
  }

 private:
  std::chrono::microseconds limit_;
  std::chrono::steady_clock::time_point end_{};
  bool started_ = false;
};

}  // namespace fiddler
