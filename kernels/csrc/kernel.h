// What every instruction set provides: a table of functions over packed tiles, and one for attention.
//
// This header is included by sources compiled with different instruction set flags. It must contain no inline
// function and include nothing that does: the linker keeps one copy of such a function, and if that copy were
// the AVX-512 one the program would die on a CPU without it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace fiddler {

// c[r][n][0..16) (+)= tile row r x activations of token n, for all row tiles and tokens.
struct Matmul {
  const std::uint8_t* tiles;   // tile (r, k) is at tiles + r * row_stride + k * k_stride
  std::size_t row_stride;      // bytes
  std::size_t k_stride;        // bytes
  std::size_t row_tiles;
  std::size_t k_tiles;
  const void* x;               // packed activations of `tokens` tokens, k_tiles * 32 inputs each
  std::size_t tokens;          // 1 .. max_tokens
  float* c;                    // the 16 results of (r, n) are at c + r * c_row_stride + n * c_token_stride
  std::size_t c_row_stride;    // floats
  std::size_t c_token_stride;  // floats
  bool accumulate;             // add to c instead of overwriting it
};

// One range of keys of one key head, for the queries of one token that share the head.
struct Attend {
  const float* queries;    // [query_count][head_dim]
  std::size_t query_count;
  std::size_t head_dim;
  const float* keys;       // [key_count][head_dim]
  const float* values;     // likewise
  std::size_t key_count;   // 1 .. kMaxKeys
  float scale;             // of the scores
  // For every query head_dim + 2 floats: the sum of the values weighted with exp(score - greatest score of the
  // range), the sum of these weights, and the greatest score.
  float* out;
};

constexpr std::size_t kMaxKeys = 128;  // keys and values of 128 inputs: 128 KB, within a level 2 cache

struct Kernels {
  std::size_t max_tokens;        // of one Matmul: what the registers hold
  std::size_t activation_bytes;  // of one packed activation: 4 (float32) or 2 (bf16)

  // Packs `tokens` rows of `cols` floats for Matmul, padded with zeros to k_tiles * 32 inputs. The order within
  // a k tile is the kernels' own, and may depend on `tokens`; k tiles follow one another.
  void (*pack)(const float* const* rows, std::size_t tokens, std::size_t cols, std::size_t k_tiles, void* x);
  void (*matmul)(const Matmul&);
  // From the four row tiles of a panel's gate and up products, gate_up[4][tokens][16], the panel's 32 neurons
  // silu(gate) * up of every token, packed as Matmul's activations of one k tile.
  void (*swiglu)(const float* gate_up, std::size_t tokens, void* x);
  void (*attend)(const Attend&);
};

constexpr std::size_t kMaxGroup = 32;  // no kernel takes more tokens at once; sizes buffers on the stack

extern const Kernels kPortableKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512Bf16Kernels;
extern const Kernels kAmxKernels;

}  // namespace fiddler
