// Products of tiles with several groups of tokens, which share one reading of the tiles.
#pragma once

#include <cstddef>

#include "kernel.h"
#include "layout.h"

namespace fiddler {

// How the weights of a format are multiplied; measured by calibration (kernels/tuning.py).
struct FormatTuning {
  std::size_t few_tokens;    // up to this many tokens for one expert the weights are taken as they stand
  bool few_eight_bit;        // ... with activations rounded to 8 bits, where the format and the level allow it
  bool many_eight_bit;       // likewise for more tokens, in place of expansion to bf16
  std::size_t exact_tokens;  // up to this many of the few activations stay as they are, whatever few_eight_bit
};

struct Tuning {
  FormatTuning formats[kFormats];
  std::size_t panel_tokens;  // up to this many the work is divided by panels, not by rows (see expert_task.h)
};

Tuning default_tuning(const Kernels& kernels);

// How weights of a format meet some number of tokens.
struct Way {
  WeightFormat format;
  const Product* product;
  Expand expand;  // of tiles to bf16 before the product; may be null
  bool blocked;   // tiles are taken in blocks that the caches hold, for all groups of tokens
  std::size_t group_tokens;  // of a group, at most

  std::size_t activation_bytes() const { return product->activation_bytes; }
};

// Which ways there are for a format beside the one for many tokens.
struct Ways {
  std::size_t few_tokens;  // the most tokens of the way that takes weights as they stand; 0 where it is the same one
  bool eight_bit;
};

Ways ways_of(const Kernels& kernels, WeightFormat format);

Way choose_way(const Kernels& kernels, const Tuning& tuning, WeightFormat format, std::size_t tokens);

// Tiles of one block: the largest that a blocked way takes at once. 64 KB of bf16 and the activations that meet
// them stay in a level 2 cache, and each group of tokens reads them from there. (One core of a Xeon with AMX, 256
// tokens, ns for four tile products from such a block: with 8 tiles along the reduction 56-61, with 16 53-62, with 32
// 45-49; whole calls on 15 cores were not faster with 32.)
constexpr std::size_t kBlockRows = 4;
constexpr std::size_t kBlockTiles = 16;  // along the reduction
constexpr std::size_t kScratchBytes = kBlockRows * kBlockTiles * kTileBytes;

// c (+)= w x for every operand. `next` is the block that follows, whose memory is asked for meanwhile (may be
// null); a way that is not blocked runs ahead of itself instead. `scratch` holds kScratchBytes where the way
// expands.
void multiply(const Way& way, const Tiles& w, const Operand* operands, std::size_t count, bool accumulate,
              const Tiles* next, std::byte* scratch);

}  // namespace fiddler
