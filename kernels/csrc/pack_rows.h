// Rows of a checkpoint's matrix straight into an expert's block, as they are read: a model is loaded with the
// arena and a little scratch that stays in a core's cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fault.h"
#include "isa.h"
#include "layout.h"

namespace fiddler {

enum class ExpertMatrix { kGate, kUp, kDown };  // w1, w3, w2

// Rows and columns of an expert's matrix, and the rows of tiles that hold it with its padding.
inline std::size_t height_of(const ExpertShape& shape, ExpertMatrix matrix) {
  return matrix == ExpertMatrix::kDown ? shape.hidden : shape.intermediate;
}
inline std::size_t width_of(const ExpertShape& shape, ExpertMatrix matrix) {
  return matrix == ExpertMatrix::kDown ? shape.intermediate : shape.hidden;
}
inline std::size_t row_tiles_of(const ExpertShape& shape, ExpertMatrix matrix) {
  return matrix == ExpertMatrix::kDown ? shape.down_row_tiles() : 2 * shape.panels();
}

// Packs rows [first, first + count) of a matrix into the expert's bf16 block at out; the weights are bf16, row
// major. `first` is a multiple of 16, and so is `count` unless the matrix ends there; then the rows that pad
// the matrix are written, too. A weight that is NaN or infinite is a fault, at its place in the whole matrix; nothing
// is said about the block's content if there is one. The result is the same on every level.
WeightFault pack_rows(Isa isa, const ExpertShape& shape, ExpertMatrix matrix, std::size_t first, std::size_t count,
                      const std::uint16_t* rows, std::uint8_t* out);

// Packs a tile of 16 rows and 32 columns, `stride` weights apart; `tile` is aligned to 64 bytes. Returns whether all
// weights are finite.
using PackWholeTile = bool (*)(const std::uint16_t* rows, std::size_t stride, std::uint8_t* tile);
bool pack_whole_tile_avx512(const std::uint16_t* rows, std::size_t stride, std::uint8_t* tile);

// Packs up to 16 rows of up to 32 bf16 weights, `stride` weights apart, as a tile with zeros in the rest of it.
// Returns whether all weights are finite. Other threads see the tile after finish_tiles().
bool pack_tile(const std::uint16_t* rows, std::size_t stride, std::size_t height, std::size_t width,
               std::uint8_t* tile);
void finish_tiles();

}  // namespace fiddler
