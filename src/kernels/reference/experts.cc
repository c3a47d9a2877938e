// Operators of mixture-of-experts layers.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "kernels/host_device.h"
#include "kernels/reference/element.h"
#include "kernels/reference/reference.h"
#include "kernels/router.h"

namespace octavo::reference {

namespace {

std::vector<double> scores_of(const RouterRule& rule, const float* logits, std::int64_t experts) {
  std::vector<double> scores;
  double sum = 0;
  const double most = *std::max_element(logits, logits + experts);
  if (rule.scores == RouterScores::sparsemixer) return std::vector<double>(logits, logits + experts);
  for (std::int64_t e = 0; e < experts; ++e) {
    const double logit = logits[e];
    scores.push_back(rule.scores == RouterScores::sigmoid         ? 1 / (1 + std::exp(-logit))
                     : rule.scores == RouterScores::sqrt_softplus ? std::sqrt(std::log1p(std::exp(logit)))
                                                                  : std::exp(logit - most));
    sum += scores.back();
  }
  if (rule.scores == RouterScores::softmax)
    for (double& score : scores) score /= sum;
  return scores;
}

// Returns the numbers by which experts are ranked: scores plus bias, and minus infinity for experts in
// groups that are not kept.
std::vector<double> keys_of(const RouteArgs& args, std::vector<double> keys) {
  const std::int64_t experts = std::ssize(keys), groups = args.rule.groups, size = experts / groups;
  if (args.bias)
    for (std::int64_t e = 0; e < experts; ++e) keys[static_cast<std::size_t>(e)] += at(args.bias, {e});
  if (groups == 1) return keys;
  std::vector<double> ranks;
  std::vector<std::int64_t> order(static_cast<std::size_t>(groups));
  for (std::int64_t g = 0; g < groups; ++g) {
    std::vector<double> group(keys.begin() + g * size, keys.begin() + (g + 1) * size);
    std::ranges::sort(group, std::greater());
    ranks.push_back(group[0] + (args.rule.group_best > 1 && size > 1 ? group[1] : 0));
  }
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::greater(),
                           [&](std::int64_t g) { return ranks[static_cast<std::size_t>(g)]; });
  for (std::size_t i = static_cast<std::size_t>(args.rule.groups_kept); i < order.size(); ++i)
    std::fill_n(keys.begin() + order[i] * size, size, -std::numeric_limits<double>::infinity());
  return keys;
}

double sparsemixer_weight(const RouterRule& rule, const std::vector<double>& logits,
                          const std::vector<std::int64_t>& order, std::int64_t k) {
  const double most = logits[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])];
  double sum = 0;
  for (std::size_t other = static_cast<std::size_t>(k); other < order.size(); ++other) {
    const double logit = logits[static_cast<std::size_t>(order[other])];
    const bool far = (most - logit) / std::max(std::abs(logit), most) > 2 * double{rule.jitter};
    if (!far) sum += std::exp(logit - most);
  }
  return 1 / sum;
}

}  // namespace

void route(Stream&, const RouteArgs& args) {
  const std::int64_t n = args.logits.size(0), experts = args.logits.size(1), chosen = args.rule.chosen;
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> pairs(static_cast<std::size_t>(experts));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::vector<double> scores = scores_of(args.rule, args.logits.row<float>(i), experts);
    const std::vector<double> keys = keys_of(args, scores);
    std::vector<std::int64_t> order(static_cast<std::size_t>(experts));
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater(),
                             [&](std::int64_t e) { return keys[static_cast<std::size_t>(e)]; });
    for (std::int64_t k = 0; args.given && k < chosen; ++k)
      order[static_cast<std::size_t>(k)] = static_cast<std::int64_t>(at(args.given, {i, k}));
    const auto score = [&](std::int64_t k) {
      if (args.rule.scores == RouterScores::sparsemixer)
        return sparsemixer_weight(args.rule, scores, order, k);
      return scores[static_cast<std::size_t>(order[static_cast<std::size_t>(k)])];
    };
    double sum = 0;
    for (std::int64_t k = 0; k < chosen; ++k) sum += score(k);
    for (std::int64_t k = 0; k < chosen; ++k) {
      const std::int64_t expert = order[static_cast<std::size_t>(k)];
      const double scale = args.rule.scale * (args.scales ? at(args.scales, {expert}) : 1.0);
      put(args.weights, {i, k}, score(k) / (args.rule.renormalise ? sum + kLeastSum : 1) * scale);
      pairs[static_cast<std::size_t>(expert)].emplace_back(i, k);
    }
  }
  std::int32_t pair_row = 0;
  args.starts.as<std::int32_t>()[0] = 0;
  for (std::int64_t e = 0; e < experts; ++e) {
    for (const auto& [token, k] : pairs[static_cast<std::size_t>(e)]) {
      args.tokens.as<std::int32_t>()[pair_row] = static_cast<std::int32_t>(token);
      args.pair_rows.row<std::int32_t>(token)[k] = pair_row++;
    }
    args.starts.as<std::int32_t>()[e + 1] = pair_row;
  }
}

void grouped_matmul(Stream&, const GroupedMatmulArgs& args) {
  if (args.rows) check_indices("row", args.rows, args.x.size(0));
  const auto* starts = args.starts.as<std::int32_t>();
  Fp8Rounding rounding = static_cast<const ReferenceWeight&>(*args.w[0]).rounding();
  for (const Weight* w : args.w)
    rounding.scale = std::max(rounding.scale, static_cast<const ReferenceWeight&>(*w).rounding().scale);
  for (std::size_t e = 0; e < args.w.size(); ++e)
    for (std::int64_t pair_row = starts[e]; pair_row < starts[e + 1]; ++pair_row) {
      View bias = args.bias;
      if (bias) bias = View::of(bias.row<float>(static_cast<std::int64_t>(e)), DType::f32, {bias.size(1)});
      const std::int64_t row = args.rows ? args.rows.as<std::int32_t>()[pair_row] : pair_row;
      multiply({.x = args.x.rows(row, 1), .w = *args.w[e], .bias = bias, .y = args.y.rows(pair_row, 1)},
               rounding);
    }
}

void combine(Stream&, const CombineArgs& args) {
  check_indices("place", args.pair_rows, args.y.size(0));
  for (std::int64_t i = 0; i < args.out.size(0); ++i)
    for (std::int64_t d = 0; d < args.out.size(1); ++d) {
      double sum = 0;
      for (std::int64_t k = 0; k < args.pair_rows.size(1); ++k)
        sum += (args.weights ? at(args.weights, {i, k}) : 1.0) *
               at(args.y, {args.pair_rows.row<std::int32_t>(i)[k], d});
      if (args.shared) {
        const double share =
            args.shared_gate ? activation(args.gate_activation, at(args.shared_gate, {i, 0})) : 1;
        sum += share * at(args.shared, {i, d});
      }
      put(args.out, {i, d}, sum);
    }
}

}  // namespace octavo::reference
