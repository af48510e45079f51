#include "pack_rows.h"

#include <algorithm>
#include <cstring>

#if defined(__SSE2__)  // every x86-64 has it
#include <emmintrin.h>
#endif

namespace fiddler {
namespace {

constexpr std::uint16_t kExponent = 0x7f80;  // all ones: infinite or NaN

bool is_finite(std::uint16_t weight) { return (weight & kExponent) != kExponent; }

#if defined(__SSE2__)
// A tile, [16 pairs][16 rows][2], from 16 rows of 32 weights that are `stride` weights apart: four by four pairs
// are transposed. Returns whether all weights are finite. The rows are copied first: where they lie a power of
// two apart they compete for a few places of the cache, and each line is to be read once (15 GB/s instead of 9.5
// on a Zen 4 core). The tile is written past the caches, as nobody reads it before the model is complete.
bool pack_whole_tile(const std::uint16_t* rows, std::size_t stride, std::uint8_t* tile) {
  const __m128i exponent = _mm_set1_epi16(kExponent);
  __m128i bad = _mm_setzero_si128();
  __m128i lines[kTileRows][4];
  for (std::size_t row = 0; row < kTileRows; ++row) {
    for (std::size_t four = 0; four < 4; ++four) {
      const auto* from = reinterpret_cast<const __m128i*>(rows + row * stride) + four;
      lines[row][four] = _mm_loadu_si128(from);
      bad = _mm_or_si128(bad, _mm_cmpeq_epi16(_mm_and_si128(lines[row][four], exponent), exponent));
    }
  }
  auto* out = reinterpret_cast<__m128i*>(tile);
  for (std::size_t four = 0; four < 4; ++four) {
    for (std::size_t row = 0; row < kTileRows; row += 4) {
      const __m128i a = lines[row][four], b = lines[row + 1][four], c = lines[row + 2][four],
                    d = lines[row + 3][four];
      const __m128i ab_low = _mm_unpacklo_epi32(a, b), ab_high = _mm_unpackhi_epi32(a, b);
      const __m128i cd_low = _mm_unpacklo_epi32(c, d), cd_high = _mm_unpackhi_epi32(c, d);
      __m128i* to = out + four * 16 + row / 4;  // a pair of all rows is four registers
      _mm_stream_si128(to, _mm_unpacklo_epi64(ab_low, cd_low));
      _mm_stream_si128(to + 4, _mm_unpackhi_epi64(ab_low, cd_low));
      _mm_stream_si128(to + 8, _mm_unpacklo_epi64(ab_high, cd_high));
      _mm_stream_si128(to + 12, _mm_unpackhi_epi64(ab_high, cd_high));
    }
  }
  return _mm_movemask_epi8(bad) == 0;
}
#endif

// The same for up to 16 rows of up to 32 weights, with zeros in the rest of the tile.
bool pack_part_tile(const std::uint16_t* rows, std::size_t stride, std::size_t height, std::size_t width,
                    std::uint8_t* tile) {
  bool finite = true;
  std::uint16_t values[kTilePairs][kTileRows][2] = {};
  for (std::size_t row = 0; row < height; ++row) {
    for (std::size_t col = 0; col < width; ++col) {
      const std::uint16_t weight = rows[row * stride + col];
      finite = finite && is_finite(weight);
      values[col / 2][row][col % 2] = weight;
    }
  }
  std::memcpy(tile, values, kTileBytes);
  return finite;
}

PackWholeTile packer_for(Isa isa) {
#if defined(FIDDLER_HAVE_AVX512)
  if (isa >= Isa::kAvx512) return &pack_whole_tile_avx512;
#endif
  static_cast<void>(isa);
#if defined(__SSE2__)
  return &pack_whole_tile;
#else
  return [](const std::uint16_t* rows, std::size_t stride, std::uint8_t* tile) {
    return pack_part_tile(rows, stride, kTileRows, kTileCols, tile);
  };
#endif
}

}  // namespace

bool pack_tile(const std::uint16_t* rows, std::size_t stride, std::size_t height, std::size_t width,
               std::uint8_t* tile) {
#if defined(__SSE2__)
  if (height == kTileRows && width == kTileCols) return pack_whole_tile(rows, stride, tile);
#endif
  return pack_part_tile(rows, stride, height, width, tile);
}

void finish_tiles() {
#if defined(__SSE2__)
  _mm_sfence();  // what was written past the caches is seen by other threads once they know that it is there
#endif
}

WeightFault pack_rows(Isa isa, const ExpertShape& shape, ExpertMatrix matrix, std::size_t first,
                      std::size_t count, const std::uint16_t* rows, std::uint8_t* out) {
  const PackWholeTile pack_whole = packer_for(isa);
  const bool down = matrix == ExpertMatrix::kDown;
  const std::size_t height = height_of(shape, matrix), width = width_of(shape, matrix);
  const std::size_t tiles = down ? shape.panels() : shape.k_tiles();  // of a row of tiles
  // From one tile of the row to the next: w2's lie in a panel each, the others' one after the other.
  const std::size_t step = down ? shape.panel_bytes() : kTileBytes;
  const std::size_t end = first + count;
  const std::size_t row_tiles = end < height ? ceil_div(end, kTileRows) : row_tiles_of(shape, matrix);
  bool finite = true;
  for (std::size_t r = first / kTileRows; r < row_tiles; ++r) {
    const std::size_t row = r * kTileRows;
    const std::size_t tile_height = row < end ? std::min(kTileRows, end - row) : 0;
    std::uint8_t* to = out;
    if (down) {
      to += shape.down_offset() + r * kTileBytes;
    } else {
      const std::size_t before = (matrix == ExpertMatrix::kUp ? 2 : 0) + r % 2;
      to += r / 2 * shape.panel_bytes() + before * tiles * kTileBytes;
    }
    const std::uint16_t* from = rows + (std::min(row, end) - first) * width;
    for (std::size_t t = 0; t < tiles; ++t, to += step) {
      const std::size_t col = t * kTileCols, tile_width = std::min(kTileCols, width - col);
      const bool whole = tile_height == kTileRows && tile_width == kTileCols;
      const bool good = whole ? pack_whole(from + col, width, to)
                              : pack_part_tile(from + col, width, tile_height, tile_width, to);
      finite = good && finite;
    }
  }
  finish_tiles();
  if (finite) return {};
  WeightFault fault = find_fault({rows, true, count, width});
  fault.matrix = static_cast<int>(matrix);
  fault.row += first;
  return fault;
}

}  // namespace fiddler
