#include "linear_task.h"

#include <algorithm>
#include <cstring>

#include "aligned.h"
#include "groups.h"
#include "multiply.h"

namespace fiddler {
namespace {

constexpr std::size_t kChunksPerThread = 8;  // an interrupted thread delays the end by one chunk at most
// Chunks below this many bytes of weights cost more in hand-over than they save (about 5 us of reading).
constexpr std::size_t kMinChunkBytes = 64 * 1024;

struct Linear {
  const Way way;
  LinearShape shape;
  const std::uint8_t* weights;
  const float* x;
  std::size_t tokens;
  float* out;
  std::vector<Group> groups;
  AlignedBytes packed;
  std::size_t chunk_tiles;

  std::byte* packed_group(const Group& g) const {
    return packed.get() + g.first * shape.k_tiles() * way.activation_bytes();
  }

  void pack(const Group& g) const {
    const float* rows[kMaxGroup];
    for (std::size_t i = 0; i < g.tokens; ++i) rows[i] = x + (g.first + i) * shape.cols;
    way.product->pack(rows, g.tokens, shape.cols, shape.k_tiles(), packed_group(g));
  }

  Tiles tiles(std::size_t row, std::size_t rows, std::size_t k, std::size_t k_tiles) const {
    Tiles w{};
    w.values = weights + row * shape.row_tile_bytes() + k * kTileBytes;
    w.row_stride = shape.row_tile_bytes();
    w.k_stride = kTileBytes;
    w.row_tiles = rows;
    w.k_tiles = k_tiles;
    return w;
  }

  // Row tiles [first, first + rows) for all tokens; what is in c has the given strides.
  void multiply_rows(std::size_t first, std::size_t rows, float* c, std::size_t row_stride,
                     std::size_t token_stride) const {
    std::vector<Operand> operands(groups.size());
    const std::size_t step = way.blocked ? kBlockTiles : shape.k_tiles();
    for (std::size_t k = 0; k < shape.k_tiles(); k += step) {
      for (std::size_t g = 0; g < groups.size(); ++g) {
        const std::size_t count = groups[g].tokens;
        operands[g] = {packed_group(groups[g]) + k * count * way.activation_bytes(), count,
                       c + groups[g].first * token_stride, row_stride, token_stride};
      }
      const Tiles w = tiles(first, rows, k, std::min(step, shape.k_tiles() - k));
      const Tiles next = tiles(first, rows, k + step, step);  // beyond the last, the next rows
      multiply(way, w, operands.data(), operands.size(), k > 0, &next, nullptr);
    }
  }

  // One row tile of which only the first rows are real.
  void ragged(std::size_t tile) const {
    AlignedBytes buffer = aligned_bytes(tokens * kTileRows * sizeof(float));
    auto* c = reinterpret_cast<float*>(buffer.get());
    multiply_rows(tile, 1, c, kTileRows, kTileRows);
    const std::size_t row = tile * kTileRows;
    for (std::size_t n = 0; n < tokens; ++n) {
      std::memcpy(out + n * shape.rows + row, c + n * kTileRows, (shape.rows - row) * sizeof(float));
    }
  }

  void chunk(std::size_t index) const {
    const std::size_t full_tiles = shape.rows / kTileRows;
    const std::size_t end = std::min((index + 1) * chunk_tiles, ceil_div(shape.rows, kTileRows));
    for (std::size_t tile = index * chunk_tiles; tile < end; tile += kBlockRows) {
      const std::size_t stop = std::min({tile + kBlockRows, end, full_tiles});
      if (tile < stop) multiply_rows(tile, stop - tile, out + tile * kTileRows, kTileRows, shape.rows);
    }
    if (end > full_tiles) ragged(full_tiles);
  }
};

}  // namespace

std::shared_ptr<Task> make_linear_task(const Kernels& kernels, const Tuning& tuning, int threads,
                                       const LinearShape& shape, const std::uint8_t* weights, const float* x,
                                       std::size_t tokens, float* out) {
  if (tokens == 0) return std::make_shared<Task>(std::vector<Phase>{});
  const Way way = choose_way(kernels, tuning, WeightFormat::kBf16, tokens);
  auto linear = std::make_shared<Linear>(Linear{way, shape, weights, x, tokens, out, {}, nullptr, 0});
  add_groups(linear->groups, 0, tokens, way.group_tokens);
  linear->packed = aligned_bytes(tokens * shape.k_tiles() * way.activation_bytes());

  const std::size_t tiles = ceil_div(shape.rows, kTileRows);
  const std::size_t wanted = std::max(ceil_div(tiles, static_cast<std::size_t>(threads) * kChunksPerThread),
                                      ceil_div(kMinChunkBytes, shape.row_tile_bytes() * tokens));
  linear->chunk_tiles = ceil_div(wanted, kBlockRows) * kBlockRows;
  const auto groups = static_cast<std::uint32_t>(linear->groups.size());
  const auto chunks = static_cast<std::uint32_t>(ceil_div(tiles, linear->chunk_tiles));
  return std::make_shared<Task>(std::vector<Phase>{
      {groups, [linear](std::uint32_t i) { linear->pack(linear->groups[i]); }},
      {chunks, [linear](std::uint32_t i) { linear->chunk(i); }},
  });
}

}  // namespace fiddler
