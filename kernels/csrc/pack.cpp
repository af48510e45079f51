#include "pack.h"

#include <algorithm>
#include <cstring>

namespace fiddler {
namespace {

struct Matrix {
  const std::uint16_t* data;
  std::size_t rows;
  std::size_t cols;
};

// The tile whose first element is (row, col); zeros beyond the matrix.
void pack_tile(const Matrix& m, std::size_t row, std::size_t col, std::uint8_t* tile) {
  if (row >= m.rows || col >= m.cols) {
    std::memset(tile, 0, kTileBytes);
    return;
  }
  const std::size_t rows = std::min(kTileRows, m.rows - row);
  const std::size_t cols = std::min(kTileCols, m.cols - col);
  const bool ragged = rows < kTileRows || cols < kTileCols;
  if (ragged) std::memset(tile, 0, kTileBytes);
  for (std::size_t r = 0; r < rows; ++r) {
    const std::uint16_t* from = m.data + (row + r) * m.cols + col;
    std::uint8_t* to = tile + r * 4;
    for (std::size_t pair = 0; pair < cols / 2; ++pair) std::memcpy(to + pair * kTileRows * 4, from + 2 * pair, 4);
    if (cols % 2) std::memcpy(to + cols / 2 * kTileRows * 4, from + cols - 1, 2);
  }
}

// Row tiles [first, first + count) of m, all tiles along its columns; returns the end.
std::uint8_t* pack_rows(const Matrix& m, std::size_t first, std::size_t count, std::size_t k_tiles,
                        std::uint8_t* out) {
  for (std::size_t r = first; r < first + count; ++r) {
    for (std::size_t k = 0; k < k_tiles; ++k, out += kTileBytes) pack_tile(m, r * kTileRows, k * kTileCols, out);
  }
  return out;
}

}  // namespace

std::shared_ptr<Task> make_pack_expert_task(const ExpertShape& shape, const std::uint16_t* w1,
                                            const std::uint16_t* w3, const std::uint16_t* w2,
                                            std::uint8_t* out) {
  const Matrix gate{w1, shape.intermediate, shape.hidden};
  const Matrix up{w3, shape.intermediate, shape.hidden};
  const Matrix down{w2, shape.hidden, shape.intermediate};
  const auto panel = [=](std::uint32_t p) {
    std::uint8_t* to = out + p * shape.panel_bytes();
    to = pack_rows(gate, 2 * p, 2, shape.k_tiles(), to);
    to = pack_rows(up, 2 * p, 2, shape.k_tiles(), to);
    for (std::size_t r = 0; r < shape.down_row_tiles(); ++r, to += kTileBytes) {
      pack_tile(down, r * kTileRows, p * kPanelRows, to);
    }
  };
  return std::make_shared<Task>(std::vector<Phase>{{static_cast<std::uint32_t>(shape.panels()), panel}});
}

std::shared_ptr<Task> make_pack_linear_task(const LinearShape& shape, const std::uint16_t* weight,
                                            std::uint8_t* out) {
  const Matrix matrix{weight, shape.rows, shape.cols};
  const auto row_tile = [=](std::uint32_t r) {
    pack_rows(matrix, r, 1, shape.k_tiles(), out + r * shape.row_tile_bytes());
  };
  return std::make_shared<Task>(std::vector<Phase>{{static_cast<std::uint32_t>(shape.row_tiles()), row_tile}});
}

}  // namespace fiddler
