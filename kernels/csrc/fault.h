// A weight that keeps a matrix from being packed.
#pragma once

#include <cstddef>

#include "quantiser.h"

namespace fiddler {

enum class Fault { kNone, kNotFinite, kTooLarge };

struct WeightFault {
  Fault fault = Fault::kNone;
  int matrix = 0;  // of an expert: 0 w1, 1 w3, 2 w2
  std::size_t row = 0;
  std::size_t col = 0;

  explicit operator bool() const { return fault != Fault::kNone; }
};

// The fault of a matrix of which it is known that it has one: the first weight that is NaN or infinite, or, where
// there is none, the weight furthest from 0.
WeightFault find_fault(const PlainMatrix& matrix);

}  // namespace fiddler
