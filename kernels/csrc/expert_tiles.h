// Where the tiles of a packed expert lie, as operands of products.
#pragma once

#include <cstdint>

#include "kernel.h"
#include "layout.h"

namespace fiddler {

// The four row tiles of a panel's w1 and w3, k tiles [first_k, first_k + k_tiles).
inline Tiles gate_up_tiles(const ExpertShape& shape, const std::uint8_t* block, std::size_t panel,
                           std::size_t first_k, std::size_t k_tiles) {
  const std::size_t tile = tile_bytes(shape.format), group = group_bytes(shape.format);
  const std::size_t side = side_bytes(shape.format), side_row = shape.side_columns() * side;
  const std::uint8_t* start = block + panel * shape.panel_bytes();
  return {start + first_k * tile,
          shape.k_tiles() * tile,
          tile,
          start + shape.groups_offset() + first_k * group,
          shape.k_tiles() * group,
          group,
          block + shape.side_offset() + panel * kPanelGateUpTiles * side_row + first_k / kSideTiles * side,
          side_row,
          side,
          first_k % kSideTiles,
          kPanelGateUpTiles,
          k_tiles};
}

// Row tiles [first_row, first_row + row_tiles) of w2; the k tiles are `panels` panels from first_panel on.
inline Tiles down_tiles(const ExpertShape& shape, const std::uint8_t* block, std::size_t first_panel,
                        std::size_t panels, std::size_t first_row, std::size_t row_tiles) {
  const std::size_t tile = tile_bytes(shape.format), group = group_bytes(shape.format);
  const std::size_t side = side_bytes(shape.format), side_k = shape.down_row_tiles() * side;
  const std::uint8_t* start = block + first_panel * shape.panel_bytes();
  return {start + shape.down_offset() + first_row * tile,
          tile,
          shape.panel_bytes(),
          start + shape.down_groups_offset() + first_row * group,
          group,
          shape.panel_bytes(),
          block + shape.down_side_offset() + first_panel / kSideTiles * side_k + first_row * side,
          side,
          side_k,
          first_panel % kSideTiles,
          row_tiles,
          panels};
}

}  // namespace fiddler
