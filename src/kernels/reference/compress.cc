// Compressed cache entries, each from several tokens, and the residual streams of hyper-connections.
#include <cmath>
#include <vector>

#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"

namespace octavo::reference {
namespace {

// Weighted mean over tokens. `most` is the logarithm of the greatest weight so far, and the sums are
// divided by this weight. Members are in single precision, which is the format of states.
struct Mean {
  float most = 0, weights = 0, values = 0;  // if weights == 0, no token was added yet

  void add(double value, double gate) {
    const double before = weights > 0 ? most : static_cast<float>(gate);
    most = static_cast<float>(std::max(before, gate));
    const double old = std::exp(before - most), now = std::exp(gate - most);
    weights = static_cast<float>(weights * old + now);
    values = static_cast<float>(values * old + value * now);
  }
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

void divide_by_sums(std::vector<double>& matrix, std::size_t streams, bool columns, double eps) {
  const auto at = [&](std::size_t line, std::size_t i) -> double& {
    return matrix[columns ? i * streams + line : line * streams + i];
  };
  for (std::size_t line = 0; line < streams; ++line) {
    double sum = eps;
    for (std::size_t i = 0; i < streams; ++i) sum += at(line, i);
    for (std::size_t i = 0; i < streams; ++i) at(line, i) /= sum;
  }
}

}  // namespace

void compress(Stream&, const CompressArgs& args) {
  const std::int64_t dim = args.means.size(1), sets = args.state.size(1), rate = args.bias.size(0);
  for (std::int64_t s = 0; s < args.plan.slots.size(0); ++s) {
    const std::int64_t slot = args.plan.slots.as<std::int32_t>()[s];
    const std::int64_t begin = args.plan.starts.as<std::int32_t>()[s],
                       end = args.plan.starts.as<std::int32_t>()[s + 1];
    for (std::int64_t d = 0; begin < end && d < dim; ++d) {
      Mean means[2];
      const auto load_or_store = [&](std::int64_t to, bool stores) {
        for (std::int64_t set = 0; set < sets; ++set) {
          float* const numbers[] = {&means[set].most, &means[set].weights, &means[set].values};
          for (std::int64_t i = 0; i < 3; ++i)
            if (stores)
              put(args.state, {to, set, i, d}, *numbers[i]);
            else
              *numbers[i] = static_cast<float>(at(args.state, {to, set, i, d}));
        }
      };
      if (args.plan.positions.as<std::int32_t>()[begin] > 0) load_or_store(slot, false);
      for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t offset = args.plan.positions.as<std::int32_t>()[t] % rate;
        for (std::int64_t set = 0; set < sets; ++set) {
          // A token's last set of columns belongs to its own entry. If there are two sets, the first one
          // belongs to the next entry.
          const std::int64_t column = set * dim + d;
          means[sets - 1 - set].add(at(args.values, {t, column}),
                                    at(args.gates, {t, column}) + at(args.bias, {offset, column}));
        }
        if (offset == rate - 1) {
          put(args.means, {t, d}, double{means[0].values} / means[0].weights);
          means[0] = means[1];
          means[1] = {};
        }
        if (args.plan.copies && args.plan.copies.as<std::int32_t>()[t] >= 0)
          load_or_store(args.plan.copies.as<std::int32_t>()[t], true);
      }
      load_or_store(slot, true);
    }
  }
}

void collapse_streams(Stream&, const CollapseStreamsArgs& args) {
  const std::int64_t streams = args.x.size(1), dim = args.x.size(2), all = streams * dim;
  const auto count = static_cast<std::size_t>(streams);
  for (std::int64_t t = 0; t < args.x.size(0); ++t) {
    const auto x = [&](std::int64_t i) { return at(args.x, {t, i / dim, i % dim}); };
    double squares = 0;
    for (std::int64_t i = 0; i < all; ++i) squares += x(i) * x(i);
    const double inverse = 1 / std::sqrt(squares / static_cast<double>(all) + args.norm_eps);
    const auto weight = [&](std::int64_t row, std::int64_t kind) {
      double sum = 0;
      for (std::int64_t i = 0; i < all; ++i) sum += x(i) * at(args.matrix, {row, i});
      return sum * inverse * at(args.scale, {kind}) + at(args.base, {row});
    };
    std::vector<double> sums(static_cast<std::size_t>(dim));
    for (std::int64_t j = 0; j < streams; ++j) {
      const double share = sigmoid(weight(j, 0)) + args.eps;
      for (std::int64_t d = 0; d < dim; ++d)
        sums[static_cast<std::size_t>(d)] += share * at(args.x, {t, j, d});
    }
    for (std::int64_t d = 0; d < dim; ++d) put(args.out, {t, d}, sums[static_cast<std::size_t>(d)]);
    for (std::int64_t j = 0; args.post && j < streams; ++j)
      put(args.post, {t, j}, args.post_scale * sigmoid(weight(streams + j, 1)) + args.post_eps);
    if (!args.mix) continue;
    std::vector<double> mix;
    for (std::int64_t i = 0; i < streams * streams; ++i) mix.push_back(weight(2 * streams + i, 2));
    for (auto row = mix.begin(); row != mix.end(); row += streams) {
      const double most = *std::max_element(row, row + streams);
      double sum = 0;
      for (auto i = row; i != row + streams; ++i) sum += * i = std::exp(*i - most);
      for (auto i = row; i != row + streams; ++i) *i = *i / sum + args.eps;
    }
    divide_by_sums(mix, count, true, args.eps);
    for (int i = 1; i < args.iterations; ++i) {
      divide_by_sums(mix, count, false, args.eps);
      divide_by_sums(mix, count, true, args.eps);
    }
    for (std::int64_t i = 0; i < streams * streams; ++i)
      put(args.mix, {t, i}, mix[static_cast<std::size_t>(i)]);
  }
}

void expand_streams(Stream&, const ExpandStreamsArgs& args) {
  const std::int64_t streams = args.x.size(1);
  for (std::int64_t t = 0; t < args.x.size(0); ++t)
    for (std::int64_t d = 0; d < args.x.size(2); ++d) {
      double sums[kMaxStreams];
      for (std::int64_t k = 0; k < streams; ++k) {
        sums[k] = at(args.post, {t, k}) * at(args.delta, {t, d});
        if (!args.mix) sums[k] += at(args.x, {t, k, d});
        for (std::int64_t j = 0; args.mix && j < streams; ++j)
          sums[k] += at(args.mix, {t, j * streams + k}) * at(args.x, {t, j, d});
      }
      for (std::int64_t k = 0; k < streams; ++k) put(args.x, {t, k, d}, sums[k]);
    }
}

}  // namespace octavo::reference
