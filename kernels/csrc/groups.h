// Tokens in groups of what one register block takes.
#pragma once

#include <cstddef>
#include <vector>

#include "layout.h"

namespace fiddler {

struct Group {
  std::size_t first;
  std::size_t tokens;
};

// [first, first + tokens) in as few groups as possible, of sizes that differ by at most one: 5 + 4 tokens use
// the registers better than 8 + 1.
inline void add_groups(std::vector<Group>& groups, std::size_t first, std::size_t tokens, std::size_t most) {
  const std::size_t count = ceil_div(tokens, most);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t begin = tokens * i / count;
    const std::size_t end = tokens * (i + 1) / count;
    groups.push_back({first + begin, end - begin});
  }
}

}  // namespace fiddler
