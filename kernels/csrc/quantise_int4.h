// int4: least squares over codes, scales and minimums of groups, then over their 8-bit forms. Unnamed
// namespace: see kernel.h.
//
// For given scale and minimum the best codes are the nearest ones; for given codes the best scale and minimum
// solve two linear equations. Alternating between the two ends in a local optimum, so there are several starts.
#pragma once

#include "quantise_batch.h"

namespace fiddler {
namespace {

// Where the range of codes 0 to 15 starts and ends, in steps inwards from the least and the greatest weight. Relative
// error of normal weights: 0.0696 with these five, of two passes each, and two more passes for the best; 0.0691 with
// thirteen of three passes; 0.0783 with the least and the greatest weight alone. Two Zen 4 cores, each: 200 million
// weights a second with AVX-512, 125 with AVX2, 68 without; a start is a tenth of the time.
constexpr float kStarts[][2] = {{0.0f, 0.0f}, {0.5f, -0.25f}, {0.0f, 0.5f}, {0.25f, 0.0f}, {-0.25f, 0.25f}};

using Lanes = float[kLanes];

class Int4Solver {
 public:
  // Chooses the parameters and codes of a batch.
  void solve(Batch& batch) {
    for (int b = 0; b < kBlocks; ++b) best_[b] = {INFINITY, INFINITY, 0.0f, {}, {}};
    bool positive = false;
    for (int l = 0; l < kLanes; ++l) positive = positive || batch.low[l] > 0.0f;
    // Minimums of a block have one sign. Usually all are negative; where a group has only positive weights, the
    // block is also tried the other way round.
    if (batch.full) {
      solve_sign<false>(batch, true);
      if (positive) solve_sign<false>(batch, false);
    } else {
      solve_sign<true>(batch, true);
      if (positive) solve_sign<true>(batch, false);
    }
    write_codes(batch);
  }

  struct Block {
    float error;
    float scale;    // d and e: float16 values, in weights
    float minimum;
    std::uint8_t scales[kBlockGroups];
    std::uint8_t minimums[kBlockGroups];
  };
  const Block& block(int b) const { return best_[b]; }

 private:
  // Sums over the codes of a lane, from which the least squares fit follows.
  struct Sums {
    alignas(64) Lanes codes;
    alignas(64) Lanes squares;
    alignas(64) Lanes products;  // code times weight
    alignas(64) Lanes error;
  };

  template <bool kMasked>
  void solve_sign(const Batch& batch, bool negative) {
    alignas(64) Lanes plain_scale, plain_low, scale, low, best_scale, best_low, best_error;
    for (int l = 0; l < kLanes; ++l) {
      plain_low[l] = limit(batch.low[l], negative);
      plain_scale[l] = (batch.high[l] - plain_low[l]) / 15.0f;
      plain_scale[l] = plain_scale[l] > 0.0f ? plain_scale[l] : 0.0f;
      best_error[l] = INFINITY;
      best_scale[l] = plain_scale[l];
      best_low[l] = plain_low[l];
    }
    Sums sums;
    const auto keep_better = [&] {
      for (int l = 0; l < kLanes; ++l) {
        const bool better = sums.error[l] < best_error[l];
        best_error[l] = better ? sums.error[l] : best_error[l];
        best_scale[l] = better ? scale[l] : best_scale[l];
        best_low[l] = better ? low[l] : best_low[l];
      }
    };
    for (const auto& start : kStarts) {
      for (int l = 0; l < kLanes; ++l) {
        scale[l] = plain_scale[l] * ((15.0f - start[0] - start[1]) / 15.0f);
        low[l] = limit(plain_low[l] + start[0] * plain_scale[l], negative);
      }
      pass<kMasked>(batch, scale, low, sums);
      fit(batch, sums, scale, low, negative);
      pass<kMasked>(batch, scale, low, sums);
      keep_better();
    }
    for (int l = 0; l < kLanes; ++l) {
      scale[l] = best_scale[l];
      low[l] = best_low[l];
    }
    pass<kMasked>(batch, scale, low, sums);
    fit(batch, sums, scale, low, negative);
    pass<kMasked>(batch, scale, low, sums);
    keep_better();
    round_parameters<kMasked>(batch, best_scale, best_low, negative, 1);
    // Rounding may undo what was won, where groups of a block differ much: never be worse than plain.
    round_parameters<kMasked>(batch, plain_scale, plain_low, negative, 0);
  }

  // Codes of given parameters, and the sums over them.
  template <bool kMasked>
  static void pass(const Batch& batch, const float* scale, const float* low, Sums& sums) {
    alignas(64) Lanes inverse;
    for (int l = 0; l < kLanes; ++l) inverse[l] = scale[l] > kTiny ? 1.0f / scale[l] : 0.0f;
    for (int l = 0; l < kLanes; l += kWidth) {
      Vec codes = all(0.0f), squares = all(0.0f), products = all(0.0f), errors = all(0.0f);
      for (int i = 0; i < kGroup; ++i) {
        const Vec x = load(&batch.x[i][l]);
        const Vec q = code(x, load(inverse + l), load(low + l));
        const Vec difference = (load(scale + l) * q + load(low + l)) - x;
        const Vec square = difference * difference;
        if constexpr (kMasked) {
          const Vec mask = load(&batch.mask[i][l]);
          const Vec counted = q * mask;
          codes += counted;
          squares += counted * q;
          products += counted * x;
          errors += square * mask;
        } else {
          codes += q;
          squares += q * q;
          products += q * x;
          errors += square;
        }
      }
      store(sums.codes + l, codes);
      store(sums.squares + l, squares);
      store(sums.products + l, products);
      store(sums.error + l, errors);
    }
  }

  // The scale and minimum that fit the codes best. The minimum keeps its sign: where it would not, it is 0.
  static void fit(const Batch& batch, const Sums& sums, float* scale, float* low, bool negative) {
    for (int l = 0; l < kLanes; ++l) {
      const float n = batch.count[l];
      const float determinant = n * sums.squares[l] - sums.codes[l] * sums.codes[l];
      const float slope = (n * sums.products[l] - sums.codes[l] * batch.sum[l]) / determinant;
      const float both_scale = determinant > 0.0f ? slope : scale[l];
      const float both_low = (batch.sum[l] - both_scale * sums.codes[l]) / n;
      const float within = limit(both_low, negative);
      const float alone = sums.squares[l] > 0.0f ? sums.products[l] / sums.squares[l] : scale[l];
      const float chosen = within == both_low ? both_scale : alone;
      scale[l] = chosen > 0.0f ? chosen : 0.0f;
      low[l] = within;
    }
  }

  // Brings scales and minimums into their 8-bit form, tries scales up to `reach` steps off, each with the
  // minimum that then fits best, and keeps a block's result if it is the best so far.
  template <bool kMasked>
  void round_parameters(const Batch& batch, const float* scale, const float* low, bool negative, int reach) {
    Block result[kBlocks];
    alignas(64) Lanes d, e, step, offset, best_error;
    alignas(64) Lanes best_scale, best_minimum;
    for (int b = 0; b < kBlocks; ++b) {
      const int first = b * kBlockGroups;
      float greatest_scale = 0.0f, greatest_low = 0.0f;
      for (int l = first; l < first + kBlockGroups; ++l) {
        greatest_scale = greatest(greatest_scale, scale[l]);
        greatest_low = greatest(greatest_low, magnitude(low[l]));
      }
      result[b].scale = block_factor(greatest_scale * batch.unit[b], reach > 0);
      result[b].minimum = block_factor(greatest_low * batch.unit[b], reach > 0) * (negative ? 1.0f : -1.0f);
      for (int l = first; l < first + kBlockGroups; ++l) {
        d[l] = result[b].scale / batch.unit[b];
        e[l] = result[b].minimum / batch.unit[b];
      }
    }
    Sums sums;
    for (int l = 0; l < kLanes; ++l) best_error[l] = INFINITY;
    for (int delta = -reach; delta <= reach; ++delta) {
      alignas(64) Lanes scale_8, minimum_8;
      for (int l = 0; l < kLanes; ++l) {
        scale_8[l] = to_8_bits(scale[l], d[l], static_cast<float>(delta));
        step[l] = d[l] * scale_8[l];
        offset[l] = low[l];
      }
      if (reach > 0) {
        pass<kMasked>(batch, step, offset, sums);
        for (int l = 0; l < kLanes; ++l) offset[l] = (batch.sum[l] - step[l] * sums.codes[l]) / batch.count[l];
      }
      for (int l = 0; l < kLanes; ++l) {
        minimum_8[l] = to_8_bits(-offset[l], e[l], 0.0f);
        offset[l] = -(e[l] * minimum_8[l]);
      }
      pass<kMasked>(batch, step, offset, sums);
      for (int l = 0; l < kLanes; ++l) {
        const bool better = sums.error[l] < best_error[l];
        best_error[l] = better ? sums.error[l] : best_error[l];
        best_scale[l] = better ? scale_8[l] : best_scale[l];
        best_minimum[l] = better ? minimum_8[l] : best_minimum[l];
      }
    }
    for (int b = 0; b < kBlocks; ++b) {
      result[b].error = 0.0f;
      for (int g = 0; g < kBlockGroups; ++g) {
        const int l = b * kBlockGroups + g;
        result[b].error += best_error[l];
        result[b].scales[g] = static_cast<std::uint8_t>(best_scale[l]);
        result[b].minimums[g] = static_cast<std::uint8_t>(best_minimum[l]);
      }
      if (result[b].error < best_[b].error) best_[b] = result[b];
    }
  }

  void write_codes(Batch& batch) const {
    alignas(64) Lanes inverse, low;
    for (int l = 0; l < kLanes; ++l) {
      const Block& block = best_[l / kBlockGroups];
      const float unit = batch.unit[l / kBlockGroups];
      const float scale = block.scale / unit * block.scales[l % kBlockGroups];
      inverse[l] = scale > kTiny ? 1.0f / scale : 0.0f;
      low[l] = -(block.minimum / unit * block.minimums[l % kBlockGroups]);
    }
    for (int i = 0; i < kGroup; ++i) {
      for (int l = 0; l < kLanes; l += kWidth) {
        keep_codes(batch, i, l, code(load(&batch.x[i][l]), load(inverse + l), load(low + l)));
      }
    }
  }

  static Vec code(Vec x, Vec inverse, Vec low) {
    return nearest_whole(greatest(least((x - low) * inverse, all(15.0f)), all(0.0f)));
  }

  static float limit(float low, bool negative) {
    return negative ? least(low, 0.0f) : greatest(low, 0.0f);
  }

  // The float16 of which 255 make `most`; if asked for, at least that much: denormal float16 have coarse steps.
  static float block_factor(float most, bool at_least) {
    const float exact = most / 255.0f;
    const float nearest = round_to_half(exact);
    if (!at_least || nearest * 255.5f >= most) return nearest;
    return round_to_half(exact + greatest(kHalfStep, nearest * 0x1p-10f));
  }

  static float to_8_bits(float value, float factor, float delta) {
    const float ratio = magnitude(factor) > kTiny ? value / factor : 0.0f;
    const float whole = (least(ratio, 255.0f) + kRounder) - kRounder;
    return greatest(least(whole + delta, 255.0f), 0.0f);
  }

  Block best_[kBlocks];
};

template <class T>
bool quantise_int4(const PlainMatrix& from, const QuantisedMatrix& to) {
  Int4Solver solver;
  const std::size_t groups = to.groups, blocks = to.blocks;
  return for_each_batch<T>(
      from, to, [&](Batch& batch) { solver.solve(batch); },
      [&](const Batch& batch, int b, std::size_t row, std::size_t column) {
        const Int4Solver::Block& block = solver.block(b);
        if (!(block.scale <= kHalfMax && magnitude(block.minimum) <= kHalfMax)) return false;
        to.block_scales[row * blocks + column] = half_bits(block.scale);
        to.block_minimums[row * blocks + column] = half_bits(block.minimum);
        for (int g = 0; g * kGroup < batch.size[b]; ++g) {
          to.group_scales[row * groups + column * kBlockGroups + g] = block.scales[g];
          to.group_minimums[row * groups + column * kBlockGroups + g] = block.minimums[g];
        }
        return true;
      });
}

}  // namespace
}  // namespace fiddler
