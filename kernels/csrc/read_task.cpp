#include "read_task.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "layout.h"

namespace fiddler {
namespace {

constexpr std::size_t kLineWords = 8;
constexpr std::size_t kTurnWords = 4 * kLineWords;  // of one stream, before the next has its turn
constexpr std::size_t kSums = 16;                   // independent: one alone would wait for itself
// As many as kernels have chunks: with one part each, the slowest core of a busy machine would set the time.
constexpr std::size_t kPartsPerThread = 8;

inline void prefetch_line([[maybe_unused]] const std::uint64_t* line) {
#if defined(__GNUC__)
  __builtin_prefetch(line);
#endif
}

// `streams` ranges of `words` words, a whole number of turns, one after another in memory. Compilers put the sums
// of a line into the vectors that every machine of the architecture has; wider ones change nothing, because the
// core waits for memory (GB/s on one core of a Zen 4 server: SSE2 34, AVX2 35, AVX-512 34).
template <std::size_t streams, bool prefetch>
std::uint64_t read_streams(const std::uint64_t* data, std::size_t words, [[maybe_unused]] std::size_t ahead) {
  std::uint64_t sums[kSums] = {};
  for (std::size_t i = 0; i < words; i += kTurnWords) {
    for (std::size_t s = 0; s < streams; ++s) {
      const std::uint64_t* turn = data + s * words + i;
      if constexpr (prefetch) {  // beyond the end of the range, too: a prefetch never faults
        for (std::size_t w = 0; w < kTurnWords; w += kLineWords) prefetch_line(turn + ahead + w);
      }
      for (std::size_t w = 0; w < kTurnWords; ++w) sums[w % kSums] ^= turn[w];
    }
  }
  std::uint64_t total = 0;
  for (std::uint64_t sum : sums) total ^= sum;
  return total;
}

template <std::size_t streams>
std::uint64_t read_part(const std::uint64_t* data, std::size_t words, std::size_t ahead) {
  const std::size_t each = words / (streams * kTurnWords) * kTurnWords;
  std::uint64_t total =
      ahead > 0 ? read_streams<streams, true>(data, each, ahead) : read_streams<streams, false>(data, each, 0);
  for (std::size_t i = streams * each; i < words; ++i) total ^= data[i];
  return total;
}

}  // namespace

std::shared_ptr<Task> make_read_task(const std::uint64_t* data, std::size_t words, int threads, ReadStyle style,
                                     std::uint64_t* checksum) {
  *checksum = 0;
  const std::size_t lines = ceil_div(words, kLineWords);
  const std::size_t parts = std::min<std::size_t>(lines, static_cast<std::size_t>(threads) * kPartsPerThread);
  auto sums = std::make_shared<std::vector<std::uint64_t>>(parts);
  return std::make_shared<Task>(std::vector<Phase>{
      {static_cast<std::uint32_t>(parts),
       [=](std::uint32_t i) {
         const std::size_t first = lines * i / parts * kLineWords;
         const std::size_t end = std::min(words, lines * (i + 1) / parts * kLineWords);
         const auto read = style.four_streams ? read_part<4> : read_part<1>;
         (*sums)[i] = read(data + first, end - first, style.prefetch_words);
       }},
      {parts > 0 ? 1u : 0u,
       [=](std::uint32_t) {
         for (std::uint64_t sum : *sums) *checksum ^= sum;
       }},
  });
}

}  // namespace fiddler
