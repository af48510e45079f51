// What the kernels are written over: a policy P of vector operations, one for each instruction set.
//
// Everything in the *_impl.h headers is in an unnamed namespace, so that each source that includes them gets its
// own copies, compiled with its own flags (see kernel.h).
//
// A policy provides
//   Vec            16 floats; zero, load, store, set1, add, mul, fma(a, b, c) = a * b + c, div, round,
//                  max, min (the second argument where one is NaN), zero_below(v, x, limit) = 0 where
//                  x < limit, else v; exp2i(n) = 2^n for whole n from -126 to 127; sum, a float
//   kFused         whether fma rounds once
//   Activation     the stored type of an activation
//   kHalves        in how many steps a pair of inputs is multiplied: 2 (even, then odd) or 1 (dot product)
//   Weight weight(tile_pair, half), Input input(pair, half), dot(acc, weight, input)
//   store_pairs    16 floats as 8 pairs of activations with a stride
//   kMaxTokens, rows(n): tiles that a register block of n tokens takes at once
// and, to read quantised weights,
//   Words          16 words of 32 bits; load_words; signed_byte<i>(words) and nibble<i>(words), floats
//   halves(p)      16 float16, bytes(p) 16 unsigned bytes, as floats
//   store_bf16(p, even, odd)  16 pairs of floats, rounded to bf16
//   quantised_rows(n): as rows(n)
#pragma once

#include <cstring>

#include "kernel.h"

#if defined(__GNUC__)
#define FIDDLER_INLINE inline __attribute__((always_inline))
#define FIDDLER_INLINE_LAMBDA __attribute__((always_inline))
#define FIDDLER_UNROLL _Pragma("GCC unroll 16")
#define FIDDLER_PREFETCH(address) __builtin_prefetch(address, 0, 3)
#else
#define FIDDLER_INLINE inline
#define FIDDLER_INLINE_LAMBDA
#define FIDDLER_UNROLL
#define FIDDLER_PREFETCH(address) ((void)(address))
#endif

namespace fiddler {
namespace {

constexpr int kPairs = 16;      // pairs of inputs in a tile
constexpr int kPairBytes = 64;  // one pair of all 16 rows: a cache line

// One operand of a product.
struct Part {
  const Matmul& m;
  const Operand& operand;
  int first_line;  // its share of what is to be asked for
  int end_line;
};

FIDDLER_INLINE Part part_of(const Matmul& m, std::size_t i) {
  const int lines = m.ahead.lines, count = static_cast<int>(m.count), index = static_cast<int>(i);
  return {m, m.operands[i], lines * index / count, lines * (index + 1) / count};
}

// The requests of a register block of R rows, see Ahead.
template <int R>
class Fetch {
 public:
  FIDDLER_INLINE Fetch(const Part& part, std::size_t first_row) : Fetch(part.m.ahead, part, first_row) {}

  // With line `line` of the tiles at hand.
  FIDDLER_INLINE void line(int line) const {
    if (line < first_line_ || line >= end_line_) return;
    FIDDLER_UNROLL
    for (int r = 0; r < R; ++r) FIDDLER_PREFETCH(at_ + line * line_step_ + r * row_step_);
  }
  FIDDLER_INLINE void all_lines() const {
    for (int i = first_line_; i < end_line_; ++i) line(i);
  }
  FIDDLER_INLINE void next_tiles() { at_ += k_stride_; }

 private:
  FIDDLER_INLINE Fetch(const Ahead& ahead, const Part& part, std::size_t first_row)
      : first_line_(part.first_line),
        end_line_(part.end_line),
        at_(ahead.tiles + first_row * ahead.row_stride + ahead.tiles_ahead / R * ahead.k_stride),
        k_stride_(ahead.k_stride),
        row_step_(ahead.run ? kPairBytes : ahead.row_stride),
        line_step_(ahead.run ? R * kPairBytes : kPairBytes) {}

  int first_line_;
  int end_line_;
  const std::uint8_t* at_;
  std::size_t k_stride_;
  std::size_t row_step_;
  std::size_t line_step_;
};

}  // namespace
}  // namespace fiddler
