// float16 in plain C++. Unnamed namespace: sources of several instruction sets include this (see kernel.h).
#pragma once

#include <cstdint>
#include <cstring>

namespace fiddler {
namespace {

constexpr float kHalfMax = 65504.0f;
constexpr float kHalfStep = 5.9604644775390625e-8f;    // 2^-24: the smallest float16, the step of denormal ones
constexpr float kHalfNormal = 6.103515625e-5f;         // 2^-14: below it float16 is denormal

inline std::uint32_t float_bits(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return bits;
}

inline float float_from_bits(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// The nearest float16 as a float, ties to even; beyond kHalfMax it goes on in the same steps instead of becoming
// infinite. Without branches, so that loops over it become vector operations.
inline float round_to_half(float value) {
  const std::uint32_t bits = float_bits(value);
  const float normal = float_from_bits((bits + 0xfff + ((bits >> 13) & 1)) & 0xffffe000u);
  const float magnitude = float_from_bits(bits & 0x7fffffffu);
  const float denormal = (magnitude + 0.5f) - 0.5f;  // floats from 0.5 on are multiples of 2^-24
  const float rounded = magnitude < kHalfNormal ? denormal : float_from_bits(float_bits(normal) & 0x7fffffffu);
  return float_from_bits(float_bits(rounded) | (bits & 0x80000000u));
}

// The bits of a float that is a float16.
inline std::uint16_t half_bits(float value) {
  const std::uint32_t bits = float_bits(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const float magnitude = float_from_bits(bits & 0x7fffffffu);
  if (magnitude < kHalfNormal) {
    return static_cast<std::uint16_t>(sign | static_cast<std::uint32_t>(magnitude / kHalfStep));
  }
  return static_cast<std::uint16_t>(sign | (((bits & 0x7fffffffu) - 0x38000000u) >> 13));
}

}  // namespace
}  // namespace fiddler
