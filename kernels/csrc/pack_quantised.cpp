#include "pack_quantised.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace fiddler {
namespace {

// Where the tiles of one row of tiles lie.
class RowOfTiles {
 public:
  RowOfTiles(const ExpertShape& shape, ExpertMatrix matrix, std::size_t row, std::uint8_t* out)
      : shape_(shape), matrix_(matrix), row_(row), out_(out) {}

  std::uint8_t* values(std::size_t k) const { return panel(k) + index(k) * tile_bytes(shape_.format); }
  std::uint8_t* groups(std::size_t k) const {
    return panel(k) + shape_.groups_offset() + index(k) * group_bytes(shape_.format);
  }
  // The entry of the side table for tiles [8 s, 8 s + 8).
  std::uint8_t* side(std::size_t s) const {
    if (matrix_ == ExpertMatrix::kDown) {
      const std::size_t entry = s * shape_.down_row_tiles() + row_;
      return out_ + shape_.down_side_offset() + entry * side_bytes(shape_.format);
    }
    const std::size_t row = row_ / 2 * kPanelGateUpTiles + 2 * static_cast<int>(matrix_) + row_ % 2;
    return out_ + shape_.side_offset() + (row * shape_.side_columns() + s) * side_bytes(shape_.format);
  }

 private:
  std::uint8_t* panel(std::size_t k) const {
    return out_ + (matrix_ == ExpertMatrix::kDown ? k : row_ / 2) * shape_.panel_bytes();
  }
  std::size_t index(std::size_t k) const {  // of the tile in its panel
    if (matrix_ == ExpertMatrix::kDown) return shape_.gate_up_tiles() + row_;
    return (2 * static_cast<int>(matrix_) + row_ % 2) * shape_.k_tiles() + k;
  }

  const ExpertShape& shape_;
  ExpertMatrix matrix_;
  std::size_t row_;
  std::uint8_t* out_;
};

// 32 codes of a row: eight groups of four bytes, 64 bytes apart.
void put_int8(const std::uint8_t* codes, std::uint8_t* tile) {
  for (std::size_t quad = 0; quad < 8; ++quad) std::memcpy(tile + quad * kTileRows * 4, codes + 4 * quad, 4);
}

// 32 codes of a row: four words of eight codes, 64 bytes apart, even inputs in the low half and odd ones in the
// high half.
void put_int4(const std::uint8_t* codes, std::uint8_t* tile) {
  for (std::size_t octet = 0; octet < 4; ++octet) {
    const std::uint8_t* c = codes + 8 * octet;
    const unsigned even = c[0] | c[2] << 4 | c[4] << 8 | c[6] << 12;
    const unsigned odd = c[1] | c[3] << 4 | c[5] << 8 | c[7] << 12;
    const std::uint8_t word[4] = {static_cast<std::uint8_t>(even), static_cast<std::uint8_t>(even >> 8),
                                  static_cast<std::uint8_t>(odd), static_cast<std::uint8_t>(odd >> 8)};
    std::memcpy(tile + octet * kTileRows * 4, word, 4);
  }
}

// Packs rows [first, first + 16) of m, as far as it has them, as one row of tiles.
void pack_row_of_tiles(const RowOfTiles& to, WeightFormat format, const QuantisedMatrix& m, std::size_t first) {
  const bool int8 = format == WeightFormat::kInt8;
  const auto put = int8 ? put_int8 : put_int4;
  const std::size_t rows = first < m.rows ? std::min(kTileRows, m.rows - first) : 0;
  for (std::size_t k = 0; k < m.groups; ++k) {
    const std::size_t cols = std::min(kTileCols, m.cols - k * kTileCols);
    std::uint8_t* tile = to.values(k);
    std::uint8_t* groups = to.groups(k);
    if (rows < kTileRows) {
      std::memset(tile, 0, tile_bytes(format));
      std::memset(groups, 0, group_bytes(format));
    }
    for (std::size_t r = 0; r < rows; ++r) {
      const std::uint8_t* codes = m.values + (first + r) * m.cols + k * kTileCols;
      std::uint8_t padded[kTileCols];
      if (cols < kTileCols) {
        std::memset(padded, 0, sizeof padded);
        std::memcpy(padded, codes, cols);
        codes = padded;
      }
      put(codes, tile + r * 4);
      const std::size_t group = (first + r) * m.groups + k;
      if (int8) {
        std::memcpy(groups + 2 * r, m.scales + group, 2);
      } else {
        groups[r] = m.group_scales[group];
        groups[kTileRows + r] = m.group_minimums[group];
      }
    }
  }
  if (int8) return;
  for (std::size_t s = 0; s < m.blocks; ++s) {
    std::uint8_t* entry = to.side(s);
    std::memset(entry, 0, side_bytes(format));
    for (std::size_t r = 0; r < rows; ++r) {
      const std::size_t block = (first + r) * m.blocks + s;
      std::memcpy(entry + 2 * r, m.block_scales + block, 2);
      std::memcpy(entry + 2 * (kTileRows + r), m.block_minimums + block, 2);
    }
  }
}

// Memory for sixteen quantised rows.
class Scratch {
 public:
  Scratch(WeightFormat format, std::size_t cols)
      : cols_(cols),
        groups_(ceil_div(cols, kTileCols)),
        blocks_(ceil_div(cols, kTileCols * kSideTiles)),
        bytes_(kTileRows * (cols + 2 * groups_)),
        halves_(kTileRows * (format == WeightFormat::kInt8 ? groups_ : 2 * blocks_)) {}

  QuantisedMatrix rows(std::size_t count) {
    std::uint8_t* scales = bytes_.data() + kTileRows * cols_;
    return {count,  cols_,  groups_, blocks_, bytes_.data(), halves_.data(),
            scales, scales + kTileRows * groups_, halves_.data(), halves_.data() + kTileRows * blocks_};
  }

 private:
  std::size_t cols_, groups_, blocks_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint16_t> halves_;
};

}  // namespace

void pack_quantised(const ExpertShape& shape, const QuantisedMatrix& w1, const QuantisedMatrix& w3,
                    const QuantisedMatrix& w2, std::uint8_t* out) {
  const QuantisedMatrix* matrices[] = {&w1, &w3, &w2};
  for (const ExpertMatrix matrix : {ExpertMatrix::kGate, ExpertMatrix::kUp, ExpertMatrix::kDown}) {
    const QuantisedMatrix& from = *matrices[static_cast<int>(matrix)];
    for (std::size_t row = 0; row < row_tiles_of(shape, matrix); ++row) {
      pack_row_of_tiles({shape, matrix, row, out}, shape.format, from, row * kTileRows);
    }
  }
}

WeightFault quantise_rows(Isa isa, const ExpertShape& shape, ExpertMatrix matrix, std::size_t first,
                          std::size_t count, const std::uint16_t* rows, std::uint8_t* out) {
  const std::size_t width = width_of(shape, matrix), end = first + count;
  const std::size_t row_tiles =
      end < height_of(shape, matrix) ? ceil_div(end, kTileRows) : row_tiles_of(shape, matrix);
  Scratch scratch(shape.format, width);
  for (std::size_t r = first / kTileRows; r < row_tiles; ++r) {
    const std::size_t row = std::min(r * kTileRows, end);
    const QuantisedMatrix quantised = scratch.rows(std::min(kTileRows, end - row));
    const PlainMatrix plain{rows + (row - first) * width, true, quantised.rows, width};
    WeightFault fault = quantise(isa, shape.format, plain, quantised);
    if (fault) {
      fault.matrix = static_cast<int>(matrix);
      fault.row += row;
      return fault;
    }
    pack_row_of_tiles({shape, matrix, r, out}, shape.format, quantised, 0);
  }
  return {};
}

}  // namespace fiddler
