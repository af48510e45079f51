// Rows of a checkpoint's matrix straight into an expert's block, as they are read: a model is loaded with the
// arena and a little scratch that stays in a core's cache.
#pragma once

#include <cstddef>
#include <cstdint>

#include "layout.h"

namespace fiddler {

enum class ExpertMatrix { kGate, kUp, kDown };  // w1, w3, w2

constexpr std::size_t kAllFinite = static_cast<std::size_t>(-1);

// Packs rows [first, first + count) of a matrix into the expert's bf16 block at out; the weights are bf16, row
// major. `first` is a multiple of 16, and so is `count` unless the matrix ends there; then the rows that pad
// the matrix are written, too. Returns the index into `rows` of the first weight that is NaN or infinite, or
// kAllFinite; nothing is said about the block's content if there is one.
std::size_t pack_rows(const ExpertShape& shape, ExpertMatrix matrix, std::size_t first, std::size_t count,
                      const std::uint16_t* rows, std::uint8_t* out);

}  // namespace fiddler
