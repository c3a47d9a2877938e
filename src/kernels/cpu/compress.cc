// Compresses several tokens into one cache entry by a running weighted mean. Each thread processes some of
// the columns.
#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kColumns = 64;

// Running means of some columns: the logarithm of the greatest weight so far, and the sums of weights and
// of weighted values relative to it. If a sum of weights is 0, no token was added yet.
struct Means {
  float most[kColumns], weights[kColumns], values[kColumns];

  void add(const float* value, const float* gate, const float* bias, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) {
      const float g = gate[c] + bias[c], before = weights[c] > 0 ? most[c] : g;
      most[c] = std::max(before, g);
      const float old = std::exp(before - most[c]), now = std::exp(g - most[c]);
      weights[c] = weights[c] * old + now;
      values[c] = values[c] * old + value[c] * now;
    }
  }
  void read(const float* state, std::int64_t dim, std::int64_t count) {
    std::copy_n(state, count, most);
    std::copy_n(state + dim, count, weights);
    std::copy_n(state + 2 * dim, count, values);
  }
  void write(float* state, std::int64_t dim, std::int64_t count) const {
    std::copy_n(most, count, state);
    std::copy_n(weights, count, state + dim);
    std::copy_n(values, count, state + 2 * dim);
  }
};

void run_columns(const CompressArgs& args, std::int64_t sequence, std::int64_t column, std::int64_t count) {
  const StatePlan& plan = args.plan;
  const std::int64_t begin = plan.starts.as<std::int32_t>()[sequence],
                     end = plan.starts.as<std::int32_t>()[sequence + 1];
  if (begin == end) return;
  const std::int64_t dim = args.means.size(1), sets = args.state.size(1), rate = args.bias.size(0);
  const auto* const positions = plan.positions.as<std::int32_t>();
  Means means[2] = {};
  const auto state = [&](std::int64_t slot, std::int64_t set) {
    CHECK(slot >= 0 && slot < args.state.size(0), "state {} of {}", slot, args.state.size(0));
    return args.state.row<float>(slot) + set * 3 * dim + column;
  };
  const auto write = [&](std::int64_t slot) {
    for (std::int64_t set = 0; set < sets; ++set) means[set].write(state(slot, set), dim, count);
  };
  const std::int64_t own = plan.slots.as<std::int32_t>()[sequence];
  for (std::int64_t set = 0; positions[begin] > 0 && set < sets; ++set)
    means[set].read(state(own, set), dim, count);
  for (std::int64_t t = begin; t < end; ++t) {
    const std::int64_t offset = positions[t] % rate;
    for (std::int64_t set = 0; set < sets; ++set) {
      // A token's last set of columns belongs to its own entry. If there are two sets, the first one belongs
      // to the next entry.
      const std::int64_t first = set * dim + column;
      means[sets - 1 - set].add(args.values.row<float>(t) + first, args.gates.row<float>(t) + first,
                                args.bias.row<float>(offset) + first, count);
    }
    if (offset == rate - 1) {
      for (std::int64_t c = 0; c < count; ++c)
        args.means.row<float>(t)[column + c] = means[0].values[c] / means[0].weights[c];
      means[0] = means[1];
      means[1] = {};
    }
    if (const std::int32_t copy = plan.copies ? plan.copies.as<std::int32_t>()[t] : -1; copy >= 0)
      write(copy);
  }
  write(own);
}

}  // namespace

void compress(Stream& stream, const CompressArgs& args) {
  for_pieces(pool_of(stream), args.plan.slots.size(0), args.means.size(1), kColumns,
             [&](std::int64_t sequence, std::int64_t column, std::int64_t count) {
               run_columns(args, sequence, column, count);
             });
}

}  // namespace octavo::cpu
