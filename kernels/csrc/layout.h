// The packed layout of weights on the host: tiles, panels, experts.
//
// A tile is 16 rows x 32 inputs of bf16 with pairs of inputs interleaved, [16 pairs][16 rows][2]: 1 KB. An
// expert is a sequence of panels of 32 intermediate neurons; a panel holds the tiles of its w1 rows, of its w3
// rows, and of the matching w2 columns. Sizes are padded to 32 with zeros, which add nothing to any product.
#pragma once

#include <cstddef>

namespace fiddler {

constexpr std::size_t kTileRows = 16;
constexpr std::size_t kTileCols = 32;
constexpr std::size_t kTilePairs = kTileCols / 2;
constexpr std::size_t kTileBytes = kTileRows * kTileCols * 2;
constexpr std::size_t kPanelRows = 32;                          // intermediate neurons of a panel
constexpr std::size_t kPanelGateUpTiles = 4;                    // row tiles: two of w1, then two of w3

constexpr std::size_t ceil_div(std::size_t a, std::size_t b) { return (a + b - 1) / b; }

struct ExpertShape {
  std::size_t hidden;
  std::size_t intermediate;

  std::size_t k_tiles() const { return ceil_div(hidden, kTileCols); }          // along w1's and w3's inputs
  std::size_t down_row_tiles() const { return 2 * k_tiles(); }                 // along w2's rows
  std::size_t padded_hidden() const { return k_tiles() * kTileCols; }
  std::size_t panels() const { return ceil_div(intermediate, kPanelRows); }
  std::size_t down_offset() const { return kPanelGateUpTiles * k_tiles() * kTileBytes; }  // w2 in its panel
  std::size_t panel_bytes() const { return down_offset() + down_row_tiles() * kTileBytes; }
  std::size_t nbytes() const { return panels() * panel_bytes(); }
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
