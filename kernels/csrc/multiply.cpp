#include "multiply.h"

#include <algorithm>

namespace fiddler {
namespace {

// Above this many tokens for one expert a call is divided by rows. Time by panels / time by rows on one core of a
// Xeon with AVX-512, AVX2 kernels: 576 x 768 (in the caches) 0.98 with 1 token, 1.0 with 12, 1.05 with 32,
// AVX512 1.1 with 12; 4096 x 14336 (from memory) 0.85 with 1 token, 0.85-0.9 with 12, 1.0 with 64.
constexpr std::size_t kPanelTokens = 12;

// How many bytes a way that is not blocked runs ahead, for all rows that a register block reads side by side: about
// half a microsecond of one core's share. One core of a Zen 4 server, bf16, 1 token, AVX2, ms per Mixtral expert: with
// 4 KB along the reduction 12.7, with 8 KB 13.6, with 16 KB 14.
constexpr std::size_t kRowsAhead = 4096;
// The same in w2's tiles of one panel, which are one run: 13.2 ms with 4 KB, 12.7 with 8 KB.
constexpr std::size_t kRunAhead = 8192;

Tiles expanded(const Tiles& w, const std::byte* tiles) {
  Tiles out{};
  out.values = reinterpret_cast<const std::uint8_t*>(tiles);
  out.row_stride = w.k_tiles * kTileBytes;
  out.k_stride = kTileBytes;
  out.row_tiles = w.row_tiles;
  out.k_tiles = w.k_tiles;
  return out;
}

}  // namespace

Tuning default_tuning(const Kernels& kernels) {
  Tuning tuning{};
  for (std::size_t f = 0; f < kFormats; ++f) tuning.formats[f] = {kernels.few_tokens[f], false, false, 0};
  tuning.panel_tokens = kPanelTokens;
  return tuning;
}

Ways ways_of(const Kernels& kernels, WeightFormat format) {
  const auto f = static_cast<std::size_t>(format);
  const bool one = kernels.few[f] == kernels.many && !kernels.expand[f];
  return {one ? 0 : kernels.few[f]->max_tokens, kernels.eight_bit[f] != nullptr};
}

Way choose_way(const Kernels& kernels, const Tuning& tuning, WeightFormat format, std::size_t tokens) {
  const auto f = static_cast<std::size_t>(format);
  const FormatTuning& choice = tuning.formats[f];
  const bool few = tokens <= choice.few_tokens;
  const Product* product = kernels.many;
  Expand expand = kernels.expand[f];
  const bool rounded = few ? choice.few_eight_bit && tokens > choice.exact_tokens : choice.many_eight_bit;
  if (kernels.eight_bit[f] && rounded) {
    product = kernels.eight_bit[f];
    expand = nullptr;
  } else if (few && tokens <= kernels.few[f]->max_tokens) {
    product = kernels.few[f];
    expand = nullptr;
  }
  const bool one = tokens <= product->max_tokens;  // group
  return {format, product, expand, expand || !one, one ? product->max_tokens : product->shared_tokens};
}

void multiply(const Way& way, const Tiles& w, const Operand* operands, std::size_t count, bool accumulate,
              const Tiles* next, std::byte* scratch) {
  Tiles source = w;
  if (way.expand) {
    way.expand(w, reinterpret_cast<std::uint8_t*>(scratch));
    source = expanded(w, scratch);
  }
  const std::size_t tile = tile_bytes(way.format);
  const int lines = static_cast<int>(tile / 64);
  Ahead ahead{};
  if (way.blocked && next) {
    ahead = {next->values, next->row_stride, next->k_stride, lines, 0, false};
  } else if (!way.blocked && w.k_tiles == 1 && w.row_stride == tile) {
    ahead = {w.values + kRunAhead, w.row_stride, w.k_stride, lines, 0, true};
  } else if (!way.blocked) {
    ahead = {w.values, w.row_stride, w.k_stride, lines, static_cast<int>(kRowsAhead / tile), false};
  }
  way.product->matmul({source, operands, count, accumulate, ahead});
}

}  // namespace fiddler
