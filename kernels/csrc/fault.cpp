#include "fault.h"

#include <cmath>
#include <cstring>

namespace fiddler {
namespace {

float weight_at(const PlainMatrix& matrix, std::size_t i) {
  if (!matrix.bf16) return static_cast<const float*>(matrix.data)[i];
  const std::uint32_t bits = static_cast<std::uint32_t>(static_cast<const std::uint16_t*>(matrix.data)[i]) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

}  // namespace

WeightFault find_fault(const PlainMatrix& matrix) {
  std::size_t furthest = 0;
  for (std::size_t i = 0; i < matrix.rows * matrix.cols; ++i) {
    const float weight = weight_at(matrix, i);
    if (!std::isfinite(weight)) return {Fault::kNotFinite, 0, i / matrix.cols, i % matrix.cols};
    if (std::fabs(weight) > std::fabs(weight_at(matrix, furthest))) furthest = i;
  }
  return {Fault::kTooLarge, 0, furthest / matrix.cols, furthest % matrix.cols};
}

}  // namespace fiddler
