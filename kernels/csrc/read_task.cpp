#include "read_task.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "layout.h"

namespace fiddler {
namespace {

constexpr std::size_t kChunkWords = std::size_t{1} << 17;  // 1 MB: many per thread, each far above its cost

std::uint64_t read(const std::uint64_t* data, std::size_t words) {
  // Eight independent sums keep the load ports busy; one would wait for itself.
  std::uint64_t sums[8] = {};
  std::size_t i = 0;
  for (; i + 8 <= words; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) sums[lane] ^= data[i + lane];
  }
  for (; i < words; ++i) sums[0] ^= data[i];
  std::uint64_t total = 0;
  for (std::uint64_t sum : sums) total ^= sum;
  return total;
}

}  // namespace

std::shared_ptr<Task> make_read_task(const std::uint64_t* data, std::size_t words, std::uint64_t* checksum) {
  *checksum = 0;
  const std::size_t chunks = ceil_div(words, kChunkWords);
  auto sums = std::make_shared<std::vector<std::uint64_t>>(chunks);
  return std::make_shared<Task>(std::vector<Phase>{
      {static_cast<std::uint32_t>(chunks),
       [=](std::uint32_t i) {
         const std::size_t first = i * kChunkWords;
         (*sums)[i] = read(data + first, std::min(kChunkWords, words - first));
       }},
      {chunks > 0 ? 1u : 0u,
       [=](std::uint32_t) {
         for (std::uint64_t sum : *sums) *checksum ^= sum;
       }},
  });
}

}  // namespace fiddler
