// Plain reading of memory: the yardstick for kernels whose speed is the memory's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "task.h"

namespace fiddler {

// How a thread walks through its part. Which way is fastest depends on the machine's own prefetching, so a
// measurement tries several.
struct ReadStyle {
  bool four_streams;           // four quarters side by side
  std::size_t prefetch_words;  // how far ahead lines are asked for; 0: not at all
};

// Reads `words` 64-bit words, some contiguous parts for each of `threads`; *checksum becomes their exclusive or, so
// that nothing can be left out.
std::shared_ptr<Task> make_read_task(const std::uint64_t* data, std::size_t words, int threads, ReadStyle style,
                                     std::uint64_t* checksum);

}  // namespace fiddler
