#include "timing/fit_timing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace octavo {
namespace {

constexpr int kTerms = 5;  // fixed, weights, token, cached token, pair
constexpr int kRoundsMax = 50;
constexpr int kDescents = 2000;

using Coefficients = std::array<double, kTerms>;

// The formula of StepTiming has two maxima. Sides says which term of each maximum is the larger one.
struct Sides {
  bool by_tokens = false;  // true: arithmetic of matrix products; false: reading the weights
  bool by_pairs = false;   // true: arithmetic of attention; false: reading the cache
  bool operator==(const Sides&) const = default;
};

Coefficients terms_of(const StepWork& work, Sides sides) {
  return {1, sides.by_tokens ? 0.0 : 1.0, sides.by_tokens ? static_cast<double>(work.tokens) : 0.0,
          sides.by_pairs ? 0.0 : static_cast<double>(work.kv_tokens),
          sides.by_pairs ? static_cast<double>(work.pairs) : 0.0};
}

StepTiming timing_of(const Coefficients& c) {
  return {.fixed_us = c[0], .weights_us = c[1], .token_us = c[2], .kv_token_us = c[3], .pair_us = c[4]};
}

// Solves the least squares problem for fixed sides. Each step is weighted by 1 / its time.
Coefficients fit_linear(std::span<const TimedStep> steps, std::span<const Sides> sides) {
  std::array<Coefficients, kTerms> products{};
  Coefficients targets{};  // right side of the normal equations. After weighting, every measured time is 1.
  for (std::size_t i = 0; i < steps.size(); ++i) {
    Coefficients terms = terms_of(steps[i].work, sides[i]);
    for (double& term : terms) term /= static_cast<double>(steps[i].microseconds);
    for (std::size_t a = 0; a < kTerms; ++a) {
      targets[a] += terms[a];
      for (std::size_t b = 0; b < kTerms; ++b) products[a][b] += terms[a] * terms[b];
    }
  }
  Coefficients x{};
  for (int descent = 0; descent < kDescents; ++descent) {
    for (std::size_t a = 0; a < kTerms; ++a) {
      if (products[a][a] == 0) continue;
      double rest = targets[a];
      for (std::size_t b = 0; b < kTerms; ++b)
        if (b != a) rest -= products[a][b] * x[b];
      x[a] = std::max(0.0, rest / products[a][a]);
    }
  }
  return x;
}

Sides sides_of(const StepWork& work, const StepTiming& timing) {
  return {.by_tokens = timing.token_us * static_cast<double>(work.tokens) > timing.weights_us,
          .by_pairs = timing.pair_us * static_cast<double>(work.pairs) >
                      timing.kv_token_us * static_cast<double>(work.kv_tokens)};
}

double squared_errors(const StepTiming& timing, std::span<const TimedStep> steps) {
  double sum = 0;
  for (const TimedStep& step : steps) sum += std::pow(relative_error(timing, step), 2);
  return sum;
}

}  // namespace

double relative_error(const StepTiming& timing, const TimedStep& step) {
  const auto measured = static_cast<double>(step.microseconds);
  return std::abs(static_cast<double>(timing.microseconds(step.work)) - measured) / measured;
}

StepTiming fit_timing(std::span<const TimedStep> steps) {
  StepTiming best;
  double least = std::numeric_limits<double>::infinity();
  // Tries several start values. `tokens` is the number of tokens above which arithmetic of matrix products
  // takes longer, and `ratio` is the number of pairs per cached token above which arithmetic of attention
  // takes longer.
  for (std::int64_t tokens = 0; tokens <= 4096; tokens = std::max<std::int64_t>(1, tokens * 4)) {
    for (const double ratio : {0.0, 1.5, 16.0, 1e9}) {
      std::vector<Sides> sides;
      for (const TimedStep& step : steps)
        sides.push_back({step.work.tokens > tokens, static_cast<double>(step.work.pairs) >
                                                        ratio * static_cast<double>(step.work.kv_tokens)});
      for (int round = 0; round < kRoundsMax; ++round) {
        const StepTiming timing = timing_of(fit_linear(steps, sides));
        if (const double errors = squared_errors(timing, steps); errors < least) {
          least = errors;
          best = timing;
        }
        std::vector<Sides> next;
        for (const TimedStep& step : steps) next.push_back(sides_of(step.work, timing));
        if (std::exchange(sides, next) == next) break;
      }
    }
  }
  return best;
}

}  // namespace octavo
