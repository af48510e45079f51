// A linear layer's weight (bf16, row major) to packed tiles.
#pragma once

#include <cstdint>

#include "fault.h"
#include "layout.h"

namespace fiddler {

// Packs weight [rows, cols] into shape.nbytes() bytes at out, on the calling thread. A weight that is NaN or
// infinite is a fault; then nothing is said about the content of `out`.
WeightFault pack_linear(const LinearShape& shape, const std::uint16_t* weight, std::uint8_t* out);

}  // namespace fiddler
