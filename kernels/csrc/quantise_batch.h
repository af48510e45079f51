// Sixteen groups of 32 weights at once, one in each lane: what both quantisers work on.
//
// No sum crosses lanes but in a fixed order and nothing is contracted (CMakeLists.txt), so every instruction set
// gives the same bits. The loops over weights are written in the compiler's vectors, of the width that the source
// is compiled for; the few loops over lanes only are plain C++.
// Unnamed namespace: see kernel.h.
#pragma once

#include <cmath>
#include <cstddef>

#include "half.h"
#include "quantiser.h"

namespace fiddler {
namespace {

constexpr int kGroup = 32;         // weights
constexpr int kBlockGroups = 8;
constexpr int kBlock = kGroup * kBlockGroups;
constexpr int kLanes = 16;
constexpr int kBlocks = kLanes / kBlockGroups;  // blocks of a batch

// Adding and subtracting it rounds floats up to 2^22 to whole numbers, ties to even.
constexpr float kRounder = 12582912.0f;

// Scales below this are nothing beside the batch's weights of about 1; their inverse could overflow.
constexpr float kTiny = 1e-30f;

// Not the library's: an inline function of it could be shared between sources of different instruction sets.
template <class T>
inline T least(T a, T b) {
  return a < b ? a : b;
}
template <class T>
inline T greatest(T a, T b) {
  return a > b ? a : b;
}
inline float magnitude(float x) { return x < 0.0f ? -x : x; }

#if defined(__AVX512F__)
constexpr int kWidth = 16;
#elif defined(__AVX__)
constexpr int kWidth = 8;
#elif defined(__GNUC__)
constexpr int kWidth = 4;
#else
constexpr int kWidth = 1;
#endif
#if defined(__GNUC__)
typedef float Vec __attribute__((vector_size(4 * kWidth)));
#else
typedef float Vec;
#endif
inline Vec load(const float* from) {
  Vec v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
inline void store(float* to, Vec v) { std::memcpy(to, &v, sizeof v); }
inline Vec all(float value) { return Vec{} + value; }
inline Vec nearest_whole(Vec v) { return (v + all(kRounder)) - all(kRounder); }

struct Batch {
  alignas(64) float x[kGroup][kLanes];     // weights, divided by their block's unit; 0 where there is none
  alignas(64) float mask[kGroup][kLanes];  // 1 where there is a weight, else 0
  alignas(64) float count[kLanes];         // weights of the lane, at least 1
  alignas(64) float sum[kLanes];
  alignas(64) float low[kLanes];           // the least and the greatest weight of the lane
  alignas(64) float high[kLanes];
  alignas(64) std::uint8_t codes[kGroup][kLanes];
  float unit[kBlocks];                     // a power of two: a block's weights are below 2 units
  int size[kBlocks];                       // weights of the block, 0 to 256
  bool full;                               // all lanes have 32 weights
};

inline float widen(float value) { return value; }
inline float widen(std::uint16_t bf16) { return float_from_bits(static_cast<std::uint32_t>(bf16) << 16); }

// Fills block b with `size` weights; false if one is NaN or infinite.
template <class T>
inline bool load_block(Batch& batch, int b, const T* from, int size) {
  alignas(64) float weights[kBlock];
  for (int i = 0; i < size; ++i) weights[i] = widen(from[i]);
  for (int i = size; i < kBlock; ++i) weights[i] = 0.0f;
  std::int32_t largest = 0;  // magnitudes of floats are ordered as their bits are, NaN above all
  for (int i = 0; i < kBlock; ++i) {
    largest = greatest(largest, static_cast<std::int32_t>(float_bits(weights[i]) & 0x7fffffffu));
  }
  if (largest >= 0x7f800000) return false;
  // Squares of weights near 1 neither overflow nor vanish. Both powers of two are normal floats.
  const int exponent = least(greatest((largest >> 23) - 127, -100), 126);
  const float inverse = float_from_bits(static_cast<std::uint32_t>(127 - exponent) << 23);
  batch.unit[b] = float_from_bits(static_cast<std::uint32_t>(127 + exponent) << 23);
  batch.size[b] = size;
  const int lane = b * kBlockGroups;
  for (int i = 0; i < kGroup; ++i) {
    for (int g = 0; g < kBlockGroups; ++g) batch.x[i][lane + g] = weights[g * kGroup + i] * inverse;
  }
  return true;
}

// What follows from the weights, once all blocks are loaded.
inline void finish_load(Batch& batch) {
  batch.full = true;
  for (int b = 0; b < kBlocks; ++b) batch.full = batch.full && batch.size[b] == kBlock;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int size = batch.size[lane / kBlockGroups] - lane % kBlockGroups * kGroup;
    const int count = least(greatest(size, 0), kGroup);
    batch.count[lane] = static_cast<float>(greatest(count, 1));
    if (!batch.full) {
      for (int i = 0; i < kGroup; ++i) batch.mask[i][lane] = i < count ? 1.0f : 0.0f;
    }
  }
  for (int l = 0; l < kLanes; l += kWidth) {
    const Vec first = load(&batch.x[0][l]);
    Vec sum = first, low = first, high = first;
    for (int i = 1; i < kGroup; ++i) {
      const Vec x = load(&batch.x[i][l]);
      // Where there is no weight the first one stands in; an empty lane has zeros.
      const Vec y = batch.full ? x : x + (all(1.0f) - load(&batch.mask[i][l])) * first;
      sum = sum + x;
      low = least(y, low);
      high = greatest(y, high);
    }
    store(batch.sum + l, sum);
    store(batch.low + l, low);
    store(batch.high + l, high);
  }
}

inline void keep_codes(Batch& batch, int i, int l, Vec codes) {
  float floats[kWidth];
  store(floats, codes);
  for (int k = 0; k < kWidth; ++k) {
    batch.codes[i][l + k] = static_cast<std::uint8_t>(static_cast<std::int32_t>(floats[k]));
  }
}

// Copies the codes of block b to its place in a row.
inline void store_codes(const Batch& batch, int b, std::uint8_t* to) {
  const int lane = b * kBlockGroups;
  if (batch.size[b] == kBlock) {
    for (int g = 0; g < kBlockGroups; ++g) {
      for (int i = 0; i < kGroup; ++i) to[g * kGroup + i] = batch.codes[i][lane + g];
    }
    return;
  }
  for (int i = 0; i < batch.size[b]; ++i) to[i] = batch.codes[i % kGroup][lane + i / kGroup];
}

// Walks over the blocks of a matrix, kBlocks at a time. `solve` quantises the loaded batch, choosing its codes;
// `store(b, row, column of blocks)` writes the parameters of block b. Both return false for weights that are too
// large.
template <class T, class Solve, class Store>
inline bool for_each_batch(const PlainMatrix& from, const QuantisedMatrix& to, Solve solve, Store store) {
  const std::size_t columns = to.blocks, blocks = from.rows * columns;
  Batch batch;
  for (std::size_t first = 0; first < blocks; first += kBlocks) {
    for (int b = 0; b < kBlocks; ++b) {
      const std::size_t row = (first + b) / columns, col = (first + b) % columns * kBlock;
      // The last batch may have a block too few: it gets an empty one.
      const std::size_t size = first + b < blocks ? least<std::size_t>(kBlock, from.cols - col) : 0;
      const T* weights = static_cast<const T*>(from.data) + (size > 0 ? row * from.cols + col : 0);
      if (!load_block(batch, b, weights, static_cast<int>(size))) return false;
    }
    finish_load(batch);
    solve(batch);
    for (int b = 0; b < kBlocks && first + b < blocks; ++b) {
      const std::size_t row = (first + b) / columns, column = (first + b) % columns;
      if (!store(batch, b, row, column)) return false;
      store_codes(batch, b, to.values + row * to.cols + column * kBlock);
    }
  }
  return true;
}

}  // namespace
}  // namespace fiddler
