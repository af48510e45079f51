// The packed layout of weights on the host: tiles, panels, experts. kernels/layout.py describes it in words.
#pragma once

#include <cstddef>

#include "format.h"

namespace fiddler {

constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileCols = 32;
constexpr std::size_t kTilePairs = kTileCols / 2;
constexpr std::size_t kTileBytes = kTileRows * kTileCols * 2;   // of bf16
constexpr std::size_t kPanelRows = 32;                          // intermediate neurons of a panel
constexpr std::size_t kPanelGateUpTiles = 4;                    // row tiles: two of w1, then two of w3

constexpr std::size_t ceil_div(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

constexpr std::size_t tile_bytes(WeightFormat format) {
  return format == WeightFormat::kBf16 ? kTileBytes : format == WeightFormat::kInt8 ? kTileBytes / 2 : kTileBytes / 4;
}
// int8: 16 float16 scales; int4: 16 scales and 16 minimums of 8 bits.
constexpr std::size_t group_bytes(WeightFormat format) { return format == WeightFormat::kBf16 ? 0 : 32; }
// 16 pairs of float16 factors.
constexpr std::size_t side_bytes(WeightFormat format) { return format == WeightFormat::kInt4 ? 64 : 0; }

struct ExpertShape {
  std::size_t hidden;
  std::size_t intermediate;
  WeightFormat format = WeightFormat::kBf16;

  std::size_t k_tiles() const { return ceil_div(hidden, kTileCols); }          // along w1's and w3's inputs
  std::size_t gate_up_tiles() const { return kPanelGateUpTiles * k_tiles(); }  // of a panel
  std::size_t down_row_tiles() const { return 2 * k_tiles(); }                 // along w2's rows
  std::size_t panel_tiles() const { return gate_up_tiles() + down_row_tiles(); }
  std::size_t padded_hidden() const { return k_tiles() * kTileCols; }
  std::size_t panels() const { return ceil_div(intermediate, kPanelRows); }

  // Offsets within a panel: w2's tiles; the parameters of the groups of w1's and w3's tiles; those of w2's.
  std::size_t down_offset() const { return gate_up_tiles() * tile_bytes(format); }
  std::size_t groups_offset() const { return panel_tiles() * tile_bytes(format); }
  std::size_t down_groups_offset() const { return groups_offset() + gate_up_tiles() * group_bytes(format); }
  std::size_t panel_bytes() const { return panel_tiles() * (tile_bytes(format) + group_bytes(format)); }

  // Offsets within the block: of the side table, and of w2's part of it.
  std::size_t side_columns() const { return ceil_div(k_tiles(), kSideTiles); }  // entries of a row tile of w1, w3
  std::size_t side_offset() const { return panels() * panel_bytes(); }
  std::size_t down_side_offset() const {
    return side_offset() + panels() * kPanelGateUpTiles * side_columns() * side_bytes(format);
  }
  std::size_t nbytes() const {
    return down_side_offset() + ceil_div(panels(), kSideTiles) * down_row_tiles() * side_bytes(format);
  }
};

struct LinearShape {
  std::size_t rows;
  std::size_t cols;

  std::size_t k_tiles() const { return ceil_div(cols, kTileCols); }
  std::size_t row_tiles() const { return 2 * ceil_div(rows, 2 * kTileRows); }  // even: blocks take two or four
  std::size_t row_tile_bytes() const { return k_tiles() * kTileBytes; }
  std::size_t nbytes() const { return row_tiles() * row_tile_bytes(); }
};

}  // namespace fiddler
