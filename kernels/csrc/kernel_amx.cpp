// The kernels for AMX: a packed weight tile is the second operand of TDPBF16PS as it stands.
//
// Activations are laid out as the first operand, [k tile][token][32 inputs]. For few tokens loading a tile does
// not pay: those go to the AVX512_BF16 kernels. Products are those of dpbf16: bf16 inputs, float32 sums, denormals
// flushed.
#include "attend_impl.h"
#include "avx512_ops.h"

namespace fiddler {
namespace {

// Two experts of 576 x 768 on one core of a Sapphire Rapids Xeon, in the caches: 4 tokens take 0.24 ms either
// way, 6 take 0.23 ms with tiles and 0.34 ms without, 128 take 0.83 and 7.2 ms.
constexpr std::size_t kVectorTokens = 4;
constexpr std::size_t kTileTokens = 16;    // rows of a tile register
constexpr std::size_t kTokenBytes = 64;    // 32 bf16 inputs
constexpr int kPairTokens = 32;            // two registers of activations, two of weights
constexpr int kMaxTokens = 64;             // four registers of sums

// The operand of LDTILECFG.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, std::size_t count) {
    row_bytes[tile] = kPairBytes;
    rows[tile] = static_cast<std::uint8_t>(count);
  }
};

void load_config(const TileConfig& config) {
#if defined(__GNUC__)
  // GCC before 12.4 takes the instruction for one that reads eight bytes, and may leave out writing the others.
  __asm__ volatile("" : : "m"(config));
#endif
  _tile_loadconfig(&config);
}

// For up to kPairTokens tokens and two row tiles: sums 0 and 1 (first 16 tokens), 2 and 3 (the others), activations
// 4 and 5, weights 6 and 7.
void configure_pair(std::size_t tokens) {
  const std::size_t first = tokens < kTileTokens ? tokens : kTileTokens;
  const std::size_t second = tokens > kTileTokens ? tokens - kTileTokens : 1;
  TileConfig config;
  config.set(0, first);
  config.set(1, first);
  config.set(2, second);
  config.set(3, second);
  config.set(4, first);
  config.set(5, second);
  config.set(6, kPairs);
  config.set(7, kPairs);
  load_config(config);
}

// For more tokens and one row tile: a sum for each 16 tokens, activations 4 and 5 and, for the last, 7, weights 6.
void configure_column(std::size_t tokens) {
  const std::size_t count = (tokens + kTileTokens - 1) / kTileTokens;
  const std::size_t rest = tokens - (count - 1) * kTileTokens;
  TileConfig config;
  for (std::size_t i = 0; i < 4; ++i) config.set(static_cast<int>(i), i + 1 < count ? kTileTokens : rest);
  config.set(4, kTileTokens);
  config.set(5, kTileTokens);
  config.set(6, kPairs);
  config.set(7, rest);
  load_config(config);
}

// kRows row tiles (1 or 2) from `row` on, for up to 16 tokens, or for more (kMore).
template <int kRows, bool kMore>
FIDDLER_INLINE void tile_block(const Part& part, std::size_t row) {
  const Matmul& m = part.m;
  const Operand& o = part.operand;
  float* c0 = o.c + row * o.c_row_stride;
  float* c1 = c0 + o.c_row_stride;
  float* d0 = c0 + kTileTokens * o.c_token_stride;
  float* d1 = c1 + kTileTokens * o.c_token_stride;
  const std::size_t c_stride = o.c_token_stride * sizeof(float);
  if (m.accumulate) {
    _tile_loadd(0, c0, c_stride);
    if constexpr (kRows > 1) _tile_loadd(1, c1, c_stride);
    if constexpr (kMore) _tile_loadd(2, d0, c_stride);
    if constexpr (kMore && kRows > 1) _tile_loadd(3, d1, c_stride);
  } else {
    _tile_zero(0);
    if constexpr (kRows > 1) _tile_zero(1);
    if constexpr (kMore) _tile_zero(2);
    if constexpr (kMore && kRows > 1) _tile_zero(3);
  }
  const std::uint8_t* w = m.w.values + row * m.w.row_stride;
  Fetch<kRows> fetch(part, row);
  const auto* x = static_cast<const std::uint8_t*>(o.x);
  for (std::size_t k = 0; k < m.w.k_tiles; ++k) {
    fetch.all_lines();
    _tile_loadd(4, x, kTokenBytes);
    if constexpr (kMore) _tile_loadd(5, x + kTileTokens * kTokenBytes, kTokenBytes);
    _tile_loadd(6, w, kPairBytes);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kMore) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kRows > 1) {
      _tile_loadd(7, w + m.w.row_stride, kPairBytes);
      _tile_dpbf16ps(1, 4, 7);
      if constexpr (kMore) _tile_dpbf16ps(3, 5, 7);
    }
    x += o.tokens * kTokenBytes;
    w += m.w.k_stride;
    fetch.next_tiles();
  }
  _tile_stored(0, c0, c_stride);
  if constexpr (kRows > 1) _tile_stored(1, c1, c_stride);
  if constexpr (kMore) _tile_stored(2, d0, c_stride);
  if constexpr (kMore && kRows > 1) _tile_stored(3, d1, c_stride);
}

// One row tile for 33 to 64 tokens, kCount times 16: the weights are read once for all of them, as they come from
// memory.
template <int kCount>
void column_block(const Part& part, std::size_t row) {
  const Matmul& m = part.m;
  const Operand& o = part.operand;
  float* c = o.c + row * o.c_row_stride;
  const std::size_t c_stride = o.c_token_stride * sizeof(float);
  const std::size_t c_tile = kTileTokens * o.c_token_stride;
  if (m.accumulate) {
    _tile_loadd(0, c, c_stride);
    _tile_loadd(1, c + c_tile, c_stride);
    _tile_loadd(2, c + 2 * c_tile, c_stride);
    if constexpr (kCount > 3) _tile_loadd(3, c + 3 * c_tile, c_stride);
  } else {
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    if constexpr (kCount > 3) _tile_zero(3);
  }
  constexpr std::size_t kTileBytes = kTileTokens * kTokenBytes;
  const std::uint8_t* w = m.w.values + row * m.w.row_stride;
  Fetch<1> fetch(part, row);
  const auto* x = static_cast<const std::uint8_t*>(o.x);
  for (std::size_t k = 0; k < m.w.k_tiles; ++k) {
    fetch.all_lines();
    _tile_loadd(6, w, kPairBytes);
    _tile_loadd(4, x, kTokenBytes);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, x + kTileBytes, kTokenBytes);
    _tile_dpbf16ps(1, 5, 6);
    if constexpr (kCount > 3) {
      _tile_loadd(4, x + 2 * kTileBytes, kTokenBytes);
      _tile_dpbf16ps(2, 4, 6);
      _tile_loadd(7, x + 3 * kTileBytes, kTokenBytes);
      _tile_dpbf16ps(3, 7, 6);
    } else {
      _tile_loadd(7, x + 2 * kTileBytes, kTokenBytes);
      _tile_dpbf16ps(2, 7, 6);
    }
    x += o.tokens * kTokenBytes;
    w += m.w.k_stride;
    fetch.next_tiles();
  }
  _tile_stored(0, c, c_stride);
  _tile_stored(1, c + c_tile, c_stride);
  _tile_stored(2, c + 2 * c_tile, c_stride);
  if constexpr (kCount > 3) _tile_stored(3, c + 3 * c_tile, c_stride);
}

void column_rows(const Part& part) {
  configure_column(part.operand.tokens);
  for (std::size_t row = 0; row < part.m.w.row_tiles; ++row) {
    if (part.operand.tokens > 3 * kTileTokens) {
      column_block<4>(part, row);
    } else {
      column_block<3>(part, row);
    }
  }
}

template <int kRows>
void pair_rows(const Matmul& m, std::size_t row, std::size_t& configured) {
  for (std::size_t i = 0; i < m.count; ++i) {
    const Part part = part_of(m, i);
    const std::size_t tokens = part.operand.tokens;
    if (tokens != configured) configure_pair(tokens);
    configured = tokens;
    if (tokens > kTileTokens) {
      tile_block<kRows, true>(part, row);
    } else {
      tile_block<kRows, false>(part, row);
    }
  }
}

// All operands meet two row tiles before the next two: those 32 KB of a block stay in the level 1 cache. Loading the
// configuration costs as much as three steps, so it is done once for operands of the same size.
//
// A step is four tile products. On one core of an Emerald Rapids Xeon it takes 24 ns without loads, 28 with tiles
// from the level 1 cache, 38 from level 2, and 48 to 62 here, sums loaded and stored included; where another program
// uses the core's second hardware thread 65, 112, 115 and 110 to 170.
void amx_matmul(const Matmul& m) {
  if (m.operands[0].tokens > kPairTokens) {
    for (std::size_t i = 0; i < m.count; ++i) column_rows(part_of(m, i));
  } else {
    std::size_t configured = 0, row = 0;
    for (; row + 2 <= m.w.row_tiles; row += 2) pair_rows<2>(m, row, configured);
    if (row < m.w.row_tiles) pair_rows<1>(m, row, configured);
  }
  _tile_release();  // libraries in this thread may use tiles, too, and idle tiles cost power
}

FIDDLER_INLINE void store_rounded(void* to, __m512 low, __m512 high) {
  const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
  std::memcpy(to, &rounded, sizeof(rounded));
}

void amx_pack(const float* const* rows, std::size_t tokens, std::size_t cols, std::size_t k_tiles, void* x) {
  for (std::size_t n = 0; n < tokens; ++n) {
    auto* to = static_cast<std::uint8_t*>(x) + n * kTokenBytes;
    for (std::size_t k = 0; k < k_tiles; ++k, to += tokens * kTokenBytes) {
      float padded[32];
      const float* from = tile_inputs(rows[n], cols, k, padded);
      store_rounded(to, finite<Avx512Ops>(_mm512_loadu_ps(from)), finite<Avx512Ops>(_mm512_loadu_ps(from + 16)));
    }
  }
}

void amx_swiglu(const float* gate_up, std::size_t tokens, void* x) {
  for (std::size_t n = 0; n < tokens; ++n) {
    const float* first = gate_up + n * 16;
    const std::size_t tile = tokens * 16;
    store_rounded(static_cast<std::uint8_t*>(x) + n * kTokenBytes, neurons<Avx512Ops>(first, first + 2 * tile),
                  neurons<Avx512Ops>(first + tile, first + 3 * tile));
  }
}

constexpr Product kTiles = {kMaxTokens, kPairTokens, kTokenBytes, &amx_pack, &amx_matmul, &amx_swiglu};

}  // namespace

const Kernels kAmxKernels = {{&kAvx512Bf16Product, &kAvx512Int8, &kAvx512Int4},
                             {kVectorTokens, kQuantisedTokens, kQuantisedTokens},
                             &kTiles,
                             {nullptr, &kVnniInt8, &kVnniInt4},
                             {nullptr, &avx512_expand_int8, &avx512_expand_int4},
                             &attend<Avx512Ops>};

}  // namespace fiddler
