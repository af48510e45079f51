// A linear layer on packed weights.
#pragma once

#include <memory>

#include "kernel.h"
#include "layout.h"
#include "multiply.h"
#include "task.h"

namespace fiddler {

// out[tokens, rows] = x[tokens, cols] times the transposed packed weights. Every result is one sum in a fixed
// order, whatever the number of threads. The memory must stay valid until the task is finished.
std::shared_ptr<Task> make_linear_task(const Kernels& kernels, const Tuning& tuning, int threads,
                                       const LinearShape& shape, const std::uint8_t* weights, const float* x,
                                       std::size_t tokens, float* out);

}  // namespace fiddler
