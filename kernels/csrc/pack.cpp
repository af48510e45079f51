#include "pack.h"

#include <algorithm>

#include "pack_rows.h"

namespace fiddler {

WeightFault pack_linear(const LinearShape& shape, const std::uint16_t* weight, std::uint8_t* out) {
  bool finite = true;
  for (std::size_t r = 0; r < shape.row_tiles(); ++r) {
    const std::size_t row = std::min(r * kTileRows, shape.rows);
    const std::size_t height = std::min(kTileRows, shape.rows - row);
    for (std::size_t k = 0; k < shape.k_tiles(); ++k, out += kTileBytes) {
      const std::size_t col = k * kTileCols, width = std::min(kTileCols, shape.cols - col);
      finite = pack_tile(weight + row * shape.cols + col, shape.cols, height, width, out) && finite;
    }
  }
  finish_tiles();
  return finite ? WeightFault{} : find_fault({weight, true, shape.rows, shape.cols});
}

}  // namespace fiddler
