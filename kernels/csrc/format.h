// The formats of expert weights. No functions here: sources of every instruction set include it (see kernel.h).
#pragma once

#include <cstddef>

namespace fiddler {

enum class WeightFormat { kBf16, kInt8, kInt4 };  // the numbers of kernels/formats.py
constexpr std::size_t kFormats = 3;
constexpr std::size_t kSideTiles = 8;  // int4: tiles along the reduction that share an entry of the side table

}  // namespace fiddler
