// What every instruction set provides for quantising. Included by sources with different instruction set flags:
// no inline function here, and nothing that has one (see kernel.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace fiddler {

// Row-major weights as a checkpoint holds them.
struct PlainMatrix {
  const void* data;  // [rows][cols] float32, or bf16
  bool bf16;
  std::size_t rows;
  std::size_t cols;
};

// A quantised matrix, not packed: values [rows][cols], parameters of groups of 32 weights [rows][groups], and of
// blocks of 256 [rows][blocks]. Pointers that a format does not use are null.
struct QuantisedMatrix {
  std::size_t rows;
  std::size_t cols;
  std::size_t groups;              // ceil(cols / 32)
  std::size_t blocks;              // ceil(cols / 256)
  std::uint8_t* values;            // int8: two's complement; int4: 0 to 15
  std::uint16_t* scales;           // int8: float16 of each group
  std::uint8_t* group_scales;      // int4: of each group
  std::uint8_t* group_minimums;    // int4: of each group
  std::uint16_t* block_scales;     // int4: float16 of each block
  std::uint16_t* block_minimums;   // int4: float16 of each block
};

// Quantises all rows; false if a weight is not finite or too large for the format's scales, and then `to` holds
// nothing of use. Every instruction set gives the same bits.
struct Quantiser {
  bool (*int8)(const PlainMatrix& from, const QuantisedMatrix& to);
  bool (*int4)(const PlainMatrix& from, const QuantisedMatrix& to);
};

extern const Quantiser kQuantisePortable;
extern const Quantiser kQuantiseAvx2;
extern const Quantiser kQuantiseAvx512;

}  // namespace fiddler
