// int8: the scale of a group that minimises the squared error. Unnamed namespace: see kernel.h.
#pragma once

#include "quantise_batch.h"

namespace fiddler {
namespace {

class Int8Solver {
 public:
  // Chooses scales (float16 values, in weights) and codes of a batch.
  void solve(Batch& batch) {
    for (int l = 0; l < kLanes; ++l) unit_[l] = batch.unit[l / kBlockGroups];
    alignas(64) float start[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      best_error_[l] = INFINITY;
      best_[l] = INFINITY;  // stays where every scale is too large
      start[l] = greatest(-batch.low[l], batch.high[l]) / 127.0f;
    }
    // From all codes of the longer side, and from the code -128 for the weight furthest from 0 (the scale's sign
    // is free); each once more from the least squares scale for the codes that it gave.
    refine(batch, start, 2);
    for (int l = 0; l < kLanes; ++l) {
      start[l] = (batch.high[l] > -batch.low[l] ? batch.high[l] : batch.low[l]) / -128.0f;
    }
    refine(batch, start, 1);
    // Denormal float16 have coarse steps: the next smaller one may cut weights off, the next greater one does not.
    bool coarse = false;
    for (int l = 0; l < kLanes; ++l) {
      start[l] = greatest(-batch.low[l], batch.high[l]) / 127.0f;
      coarse = coarse || (start[l] > 0.0f && start[l] * unit_[l] < kHalfNormal);
      start[l] += kHalfStep / 2 / unit_[l];
    }
    if (coarse) refine(batch, start, 0);
    write_codes(batch);
  }

  float scale(int lane) const { return best_[lane]; }

 private:
  void refine(const Batch& batch, float* start, int times) {
    for (int i = 0; i <= times; ++i) attempt(batch, start);
  }

  // Tries a scale, which becomes the least squares scale for its codes.
  void attempt(const Batch& batch, float* scale) {
    alignas(64) float rounded[kLanes], step[kLanes], inverse[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      const float half = round_to_half(scale[l] * unit_[l]);
      // A scale that would vanish: the smallest one is better than none.
      const float smallest = scale[l] > 0.0f ? kHalfStep : scale[l] < 0.0f ? -kHalfStep : 0.0f;
      rounded[l] = half == 0.0f ? smallest : half;
      step[l] = rounded[l] / unit_[l];
      inverse[l] = magnitude(step[l]) > kTiny ? 1.0f / step[l] : 0.0f;
    }
    alignas(64) float error[kLanes], products[kLanes], squares[kLanes];
    for (int l = 0; l < kLanes; l += kWidth) {
      Vec errors = all(0.0f), qx = all(0.0f), qq = all(0.0f);
      for (int i = 0; i < kGroup; ++i) {
        const Vec x = load(&batch.x[i][l]);
        const Vec q = code(x, load(inverse + l));
        const Vec difference = load(step + l) * q - x;
        errors += difference * difference;
        qx += q * x;
        qq += q * q;
      }
      store(error + l, errors);
      store(products + l, qx);
      store(squares + l, qq);
    }
    for (int l = 0; l < kLanes; ++l) {
      const bool better = error[l] < best_error_[l];
      best_error_[l] = better ? error[l] : best_error_[l];
      best_[l] = better ? rounded[l] : best_[l];
      best_step_[l] = better ? step[l] : best_step_[l];
      scale[l] = squares[l] > 0.0f ? products[l] / squares[l] : scale[l];
    }
  }

  void write_codes(Batch& batch) const {
    alignas(64) float inverse[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      inverse[l] = magnitude(best_step_[l]) > kTiny ? 1.0f / best_step_[l] : 0.0f;
    }
    for (int i = 0; i < kGroup; ++i) {
      for (int l = 0; l < kLanes; l += kWidth) {
        keep_codes(batch, i, l, code(load(&batch.x[i][l]), load(inverse + l)));
      }
    }
  }

  static Vec code(Vec x, Vec inverse) {
    return nearest_whole(greatest(least(x * inverse, all(127.0f)), all(-128.0f)));
  }

  alignas(64) float unit_[kLanes];
  alignas(64) float best_error_[kLanes];
  alignas(64) float best_[kLanes];       // float16 values
  alignas(64) float best_step_[kLanes];  // the same in units
};

template <class T>
bool quantise_int8(const PlainMatrix& from, const QuantisedMatrix& to) {
  Int8Solver solver;
  const std::size_t groups = to.groups;
  return for_each_batch<T>(
      from, to, [&](Batch& batch) { solver.solve(batch); },
      [&](const Batch& batch, int b, std::size_t row, std::size_t column) {
        std::uint16_t* scales = to.scales + row * groups + column * kBlockGroups;
        for (int g = 0; g * kGroup < batch.size[b]; ++g) {
          const float scale = solver.scale(b * kBlockGroups + g);
          if (!(scale <= kHalfMax && scale >= -kHalfMax)) return false;
          scales[g] = half_bits(scale);
        }
        return true;
      });
}

}  // namespace
}  // namespace fiddler
