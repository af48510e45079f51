// Plain reading of memory: the yardstick for kernels whose speed is the memory's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "task.h"

namespace fiddler {

// Reads `words` 64-bit words on all threads; *checksum becomes their exclusive or, so that nothing can be
// left out.
std::shared_ptr<Task> make_read_task(const std::uint64_t* data, std::size_t words, std::uint64_t* checksum);

}  // namespace fiddler
