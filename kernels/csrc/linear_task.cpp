#include "linear_task.h"

#include <algorithm>
#include <cstring>

#include "aligned.h"
#include "groups.h"

namespace fiddler {
namespace {

constexpr std::size_t kRowTiles = 4;         // taken together for all tokens: stay in the caches meanwhile
constexpr std::size_t kChunksPerThread = 8;  // an interrupted thread delays the end by one chunk at most
// Chunks below this many bytes of weights cost more in hand-over than they save (about 5 us of reading).
constexpr std::size_t kMinChunkBytes = 64 * 1024;

struct Linear {
  const Kernels& kernels;
  LinearShape shape;
  const std::uint8_t* weights;
  const float* x;
  std::size_t tokens;
  float* out;
  std::vector<Group> groups;
  AlignedBytes packed;
  std::size_t chunk_tiles;

  std::byte* packed_group(const Group& g) const {
    return packed.get() + g.first * shape.k_tiles() * kTileCols * kernels.activation_bytes;
  }

  void pack(const Group& g) const {
    const float* rows[kMaxGroup];
    for (std::size_t i = 0; i < g.tokens; ++i) rows[i] = x + (g.first + i) * shape.cols;
    kernels.pack(rows, g.tokens, shape.cols, shape.k_tiles(), packed_group(g));
  }

  // Row tiles [begin, end), all of their rows real.
  void full(const Group& g, std::size_t begin, std::size_t end) const {
    if (begin >= end) return;
    kernels.matmul({weights + begin * shape.row_tile_bytes(), shape.row_tile_bytes(), kTileBytes, end - begin,
                    shape.k_tiles(), packed_group(g), g.tokens,
                    out + g.first * shape.rows + begin * kTileRows, kTileRows, shape.rows, false});
  }

  // One row tile of which only the first rows are real.
  void ragged(const Group& g, std::size_t tile) const {
    alignas(64) float c[kMaxGroup * kTileRows];
    kernels.matmul({weights + tile * shape.row_tile_bytes(), shape.row_tile_bytes(), kTileBytes, 1,
                    shape.k_tiles(), packed_group(g), g.tokens, c, kTileRows, kTileRows, false});
    const std::size_t row = tile * kTileRows;
    for (std::size_t n = 0; n < g.tokens; ++n) {
      std::memcpy(out + (g.first + n) * shape.rows + row, c + n * kTileRows, (shape.rows - row) * sizeof(float));
    }
  }

  void chunk(std::size_t index) const {
    const std::size_t full_tiles = shape.rows / kTileRows;
    const std::size_t end = std::min((index + 1) * chunk_tiles, ceil_div(shape.rows, kTileRows));
    for (std::size_t tile = index * chunk_tiles; tile < end; tile += kRowTiles) {
      const std::size_t stop = std::min(tile + kRowTiles, end);
      for (const Group& g : groups) {
        full(g, tile, std::min(stop, full_tiles));
        if (stop > full_tiles) ragged(g, full_tiles);
      }
    }
  }
};

}  // namespace

std::shared_ptr<Task> make_linear_task(const Kernels& kernels, int threads, const LinearShape& shape,
                                       const std::uint8_t* weights, const float* x, std::size_t tokens,
                                       float* out) {
  if (tokens == 0) return std::make_shared<Task>(std::vector<Phase>{});
  auto linear = std::make_shared<Linear>(Linear{kernels, shape, weights, x, tokens, out, {}, nullptr, 0});
  add_groups(linear->groups, 0, tokens, kernels.max_tokens);
  linear->packed = aligned_bytes(tokens * shape.k_tiles() * kTileCols * kernels.activation_bytes);

  const std::size_t tiles = ceil_div(shape.rows, kTileRows);
  const std::size_t wanted = std::max(ceil_div(tiles, static_cast<std::size_t>(threads) * kChunksPerThread),
                                      ceil_div(kMinChunkBytes, shape.row_tile_bytes() * tokens));
  linear->chunk_tiles = ceil_div(wanted, kRowTiles) * kRowTiles;
  const auto groups = static_cast<std::uint32_t>(linear->groups.size());
  const auto chunks = static_cast<std::uint32_t>(ceil_div(tiles, linear->chunk_tiles));
  return std::make_shared<Task>(std::vector<Phase>{
      {groups, [linear](std::uint32_t i) { linear->pack(linear->groups[i]); }},
      {chunks, [linear](std::uint32_t i) { linear->chunk(i); }},
  });
}

}  // namespace fiddler
