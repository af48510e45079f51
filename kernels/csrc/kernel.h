// What every instruction set provides: products of packed tiles with activations, and attention.
//
// This header is included by sources compiled with different instruction set flags. It must contain no inline
// function and include nothing that does: the linker keeps one copy of such a function, and if that copy were
// the AVX-512 one the program would die on a CPU without it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "format.h"

namespace fiddler {

// Packed tiles (see layout.h) of a matrix or of a part of one: row_tiles x k_tiles, k along the reduction.
// Strides are bytes; what a format does not have is not looked at.
struct Tiles {
  const std::uint8_t* values;  // tile (r, k) is at values + r * row_stride + k * k_stride
  std::size_t row_stride;
  std::size_t k_stride;
  const std::uint8_t* groups;  // the parameters of tile (r, k), likewise
  std::size_t group_row_stride;
  std::size_t group_k_stride;
  const std::uint8_t* side;  // the side table's entry of (r, k): + r * row_stride + (phase + k) / 8 * k_stride
  std::size_t side_row_stride;
  std::size_t side_k_stride;
  std::size_t side_phase;
  std::size_t row_tiles;
  std::size_t k_tiles;
};

// What memory is asked for in advance: with every tile (r, k) that a product goes through, the first `lines` cache
// lines at tiles + r * row_stride + k * k_stride. It need not exist.
//
// A register block reads its rows side by side, line by line. Where they are one run of memory, asking for lines
// in that order would leave the processor's own prefetching without a pattern: then `run` asks for as many lines
// in the order of their addresses. (One core of a Zen 4 server: 10.5 GB/s in the order of use, 30 GB/s so.)
struct Ahead {
  const std::uint8_t* tiles;
  std::size_t row_stride;
  std::size_t k_stride;
  int lines;
  int tiles_ahead;  // further along the reduction, for all rows that are read side by side together
  bool run;
};

// A group of tokens that a product takes at once: packed activations, and where the results go.
struct Operand {
  const void* x;               // packed activations of `tokens` tokens, k_tiles * 32 inputs each
  std::size_t tokens;          // 1 .. max_tokens
  float* c;                    // the 16 results of (r, n) are at c + r * c_row_stride + n * c_token_stride
  std::size_t c_row_stride;    // floats
  std::size_t c_token_stride;  // floats
};

// c[r][n][0..16) (+)= tile row r x activations of token n, for all row tiles and the tokens of all operands.
struct Matmul {
  Tiles w;
  const Operand* operands;
  std::size_t count;
  bool accumulate;  // add to c instead of overwriting it
  Ahead ahead;      // of which each operand asks for its share: requests spread over the whole product
};

// Products with weights of one format.
struct Product {
  std::size_t max_tokens;        // of one operand: what the registers hold
  std::size_t shared_tokens;     // of each of several operands: what is fastest where they share a block of tiles
  std::size_t activation_bytes;  // of one token's packed activations of one k tile

  // Packs `tokens` rows of `cols` floats for Matmul, padded with zeros to k_tiles * 32 inputs. The order within
  // a k tile is the product's own, and may depend on `tokens`; k tiles follow one another.
  void (*pack)(const float* const* rows, std::size_t tokens, std::size_t cols, std::size_t k_tiles, void* x);
  void (*matmul)(const Matmul&);
  // From the four row tiles of a panel's gate and up products, gate_up[4][tokens][16], the panel's 32 neurons
  // silu(gate) * up of every token, packed as Matmul's activations of one k tile.
  void (*swiglu)(const float* gate_up, std::size_t tokens, void* x);
};

// Dequantises tiles to bf16 tiles, out[row tile][k tile] of 1 KB.
using Expand = void (*)(const Tiles& tiles, std::uint8_t* out);

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

// The kernels of an instruction set level, up to three ways for each format. With few tokens the weights are multiplied
// as they stand; with many, quantised tiles are expanded to bf16 once, for all tokens, and `many` takes those.
struct Kernels {
  const Product* few[kFormats];
  std::size_t few_tokens[kFormats];  // up to this many tokens the first way is faster: a default, see Tuning
  const Product* many;
  const Product* eight_bit[kFormats];  // with activations rounded to 8 bits, any number of tokens; may be null
  Expand expand[kFormats];  // none for bf16
  void (*attend)(const Attend&);
};

constexpr int kQuantisedTokens = 4;  // at most, with quantised weights as they stand: more are worth an expansion
constexpr std::size_t kMaxGroup = 64;  // no product takes more tokens at once; sizes buffers on the stack

// Levels share what the higher one has no better way for: AMX multiplies few tokens as AVX512_BF16 does, and
// both read quantised weights as AVX512 does.
extern const Product kAvx512Int8;
extern const Product kAvx512Int4;
extern const Product kAvx512Bf16Product;
extern const Product kVnniInt8;
extern const Product kVnniInt4;
void avx512_expand_int8(const Tiles& tiles, std::uint8_t* out);
void avx512_expand_int4(const Tiles& tiles, std::uint8_t* out);

extern const Kernels kPortableKernels;
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512Bf16Kernels;
extern const Kernels kAmxKernels;

}  // namespace fiddler
