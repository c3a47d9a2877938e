// Mixture-of-experts operators: selects experts for tokens, multiplies each expert's tokens, and adds the
// outputs.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/cpu_weight.h"
#include "kernels/router.h"

namespace octavo::cpu {
namespace {

constexpr std::int64_t kColumns = 1024;      // columns of a row that are summed at a time
constexpr std::int64_t kGrainLogits = 4096;  // minimum number of logits per thread

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }
float opened(Activation gate, float x) { return gate == Activation::softplus ? softplus(x) : sigmoid(x); }

// Returns true if an expert's score depends only on the expert's own logit.
bool by_expert(RouterScores scores) { return scores == RouterScores::sigmoid || scores == RouterScores::sqrt_softplus; }
float score_of(RouterScores scores, float logit) {
  return scores == RouterScores::sigmoid ? sigmoid(logit) : std::sqrt(softplus(logit));
}

// Computes the numbers by which experts are ranked: scores plus bias, and minus infinity for experts in
// groups that are not kept.
void rank_experts(const float* logits, const RouteArgs& args, float* keys) {
  const RouterRule& rule = args.rule;
  const std::int64_t experts = args.logits.size(1), size = experts / rule.groups;
  if (by_expert(rule.scores)) {
    for (std::int64_t e = 0; e < experts; ++e) keys[e] = score_of(rule.scores, logits[e]);
  } else {
    const float most = *std::max_element(logits, logits + experts);
    float sum = 0;
    for (std::int64_t e = 0; e < experts; ++e) sum += keys[e] = std::exp(logits[e] - most);
    for (std::int64_t e = 0; e < experts; ++e) keys[e] /= sum;
  }
  if (args.bias)
    for (std::int64_t e = 0; e < experts; ++e) keys[e] += args.bias.as<float>()[e];
  if (rule.groups == 1) return;
  float ranks[kMaxExperts];
  for (std::int64_t g = 0; g < rule.groups; ++g) {
    float first = -std::numeric_limits<float>::infinity(), second = first;
    for (const float* key = keys + g * size; key < keys + (g + 1) * size; ++key) {
      second = std::max(second, std::min(first, *key));
      first = std::max(first, *key);
    }
    ranks[g] = rule.group_best > 1 && size > 1 ? first + second : first;
  }
  for (std::int64_t g = 0; g < rule.groups; ++g) {
    std::int64_t before = 0;
    for (std::int64_t other = 0; other < rule.groups; ++other)
      before += ranks[other] > ranks[g] || (ranks[other] == ranks[g] && other < g);
    if (before >= rule.groups_kept)
      std::fill_n(keys + g * size, size, -std::numeric_limits<float>::infinity());
  }
}

// Writes the indices of the `count` largest keys to `chosen`, in descending order of keys. No index
// repeats, even if keys are NaN.
void choose(const float* keys, std::int64_t experts, int count, std::int32_t* chosen) {
  for (int k = 0; k < count; ++k) {
    std::int32_t best = -1;
    for (std::int32_t e = 0; e < experts; ++e) {
      if (best >= 0 && !(keys[e] > keys[best])) continue;
      if (std::find(chosen, chosen + k, e) == chosen + k) best = e;
    }
    chosen[k] = best;
  }
}

// Computes the softmax of the selected logits. `most` must not be less than any of them.
void softmax_weights(const float* logits, float most, std::int64_t experts, const RouterRule& rule,
                     const std::int32_t* chosen, float* weights) {
  float sum = 0;
  for (std::int64_t e = 0; !rule.renormalise && e < experts; ++e) sum += std::exp(logits[e] - most);
  for (int k = 0; k < rule.chosen; ++k) {
    weights[k] = std::exp(logits[chosen[k]] - most);
    if (rule.renormalise) sum += weights[k];
  }
  for (int k = 0; k < rule.chosen; ++k) weights[k] /= sum;
}

void own_weights(const float* logits, const RouterRule& rule, const std::int32_t* chosen, float* weights) {
  float sum = kLeastSum;
  for (int k = 0; k < rule.chosen; ++k) sum += weights[k] = score_of(rule.scores, logits[chosen[k]]);
  for (int k = 0; rule.renormalise && k < rule.chosen; ++k) weights[k] /= sum;
}

void sparsemixer_weights(const float* logits, std::int64_t experts, const RouterRule& rule,
                         const std::int32_t* chosen, float* weights) {
  for (int k = 0; k < rule.chosen; ++k) {
    const float most = logits[chosen[k]];
    float sum = 0;
    for (std::int32_t e = 0; e < experts; ++e) {
      if (std::find(chosen, chosen + k, e) != chosen + k) continue;
      const bool far = (most - logits[e]) / std::max(std::abs(logits[e]), most) > 2 * rule.jitter;
      if (!far) sum += std::exp(logits[e] - most);
    }
    weights[k] = 1 / sum;
  }
}

// Selects the experts of token i if the order of experts differs from the order of their logits.
void choose_by_rank(std::int64_t i, const RouteArgs& args, std::int32_t* chosen, float* weights) {
  const RouterRule& rule = args.rule;
  const std::int64_t experts = args.logits.size(1);
  const float* const logits = args.logits.row<float>(i);
  if (args.given) {
    for (int k = 0; k < rule.chosen; ++k) chosen[k] = static_cast<std::int32_t>(args.given.row<float>(i)[k]);
  } else {
    float keys[kMaxExperts] = {};
    rank_experts(logits, args, keys);
    choose(keys, experts, rule.chosen, chosen);
  }
  if (by_expert(rule.scores)) return own_weights(logits, rule, chosen, weights);
  softmax_weights(logits, *std::max_element(logits, logits + experts), experts, rule, chosen, weights);
}

}  // namespace

void route(Stream& stream, const RouteArgs& args) {
  const std::int64_t n = args.logits.size(0), experts = args.logits.size(1), chosen = args.rule.chosen;
  // Until the counts of all experts are known, `pair_rows` contains the experts' indices instead of row
  // indices.
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainLogits / experts);
  const RouterRule& rule = args.rule;
  const bool by_logit = !by_expert(rule.scores) && !args.bias && rule.groups == 1 && !args.given;
  pool_of(stream).for_ranges(n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float* logits = args.logits.row<float>(i);
      auto* expert = args.pair_rows.row<std::int32_t>(i);
      auto* weights = args.weights.row<float>(i);
      if (by_logit) {
        choose(logits, experts, rule.chosen, expert);
        if (rule.scores == RouterScores::sparsemixer) {
          sparsemixer_weights(logits, experts, rule, expert, weights);
        } else {
          softmax_weights(logits, logits[expert[0]], experts, rule, expert, weights);
        }
      } else {
        choose_by_rank(i, args, expert, weights);
      }
      for (int k = 0; rule.scale != 1 && k < rule.chosen; ++k) weights[k] *= rule.scale;
      for (int k = 0; args.scales && k < rule.chosen; ++k) weights[k] *= args.scales.as<float>()[expert[k]];
    }
  });
  auto* starts = args.starts.as<std::int32_t>();
  auto* tokens = args.tokens.as<std::int32_t>();
  std::fill_n(starts, experts + 1, 0);
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < chosen; ++k) ++starts[args.pair_rows.row<std::int32_t>(i)[k] + 1];
  for (std::int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
  // Advances starts[e] over the pairs of expert e, so that it becomes starts[e + 1].
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t k = 0; k < chosen; ++k) {
      std::int32_t& pair_row = args.pair_rows.row<std::int32_t>(i)[k];
      pair_row = starts[pair_row]++;
      tokens[pair_row] = static_cast<std::int32_t>(i);
    }
  std::copy_backward(starts, starts + experts, starts + experts + 1);
  starts[0] = 0;
}

void grouped_matmul(Stream& stream, const GroupedMatmulArgs& args) {
  if (args.rows) check_indices("row", args.rows, args.x.size(0));
  const auto* starts = args.starts.as<std::int32_t>();
  for (std::size_t e = 0; e < args.w.size(); ++e) {
    const std::int64_t first = starts[e], count = starts[e + 1] - starts[e];
    if (count == 0) continue;
    View bias = args.bias;
    if (bias) bias = View::of(bias.row<float>(static_cast<std::int64_t>(e)), DType::f32, {bias.size(1)});
    const auto& w = static_cast<const CpuWeight&>(*args.w[e]);
    w.multiply(cpu_stream(stream),
               {.x = args.rows ? args.x : args.x.rows(first, count),
                .w = w,
                .bias = bias,
                .y = args.y.rows(first, count)},
               args.rows ? args.rows.as<std::int32_t>() + first : nullptr);
  }
}

void combine(Stream& stream, const CombineArgs& args) {
  check_indices("place", args.pair_rows, args.y.size(0));
  const IsaKernels& kernels = cpu_stream(stream).kernels();
  const Format format = format_of(args.out.dtype);
  const auto element_bytes = static_cast<std::int64_t>(size_of(args.out.dtype));
  for_pieces(pool_of(stream), args.out.size(0), args.out.size(1), kColumns,
             [&](std::int64_t i, std::int64_t column, std::int64_t count) {
               const auto at = [&](const View& view, std::int64_t row) {
                 return static_cast<std::byte*>(view.data) + (row * view.stride[0] + column) * element_bytes;
               };
               alignas(64) float sum[kColumns] = {};
               const auto add = [&](const View& view, std::int64_t row, float weight) {
                 kernels.add_norm({.dim = count,
                                   .residual = sum,
                                   .delta = at(view, row),
                                   .delta_format = format,
                                   .delta_scale = weight,
                                   .delta_norm = {NormKind::none, 0, nullptr, nullptr},
                                   .norm = {NormKind::none, 0, nullptr, nullptr},
                                   .out = nullptr,
                                   .out_format = format});
               };
               for (std::int64_t k = 0; k < args.pair_rows.size(1); ++k)
                 add(args.y, args.pair_rows.row<std::int32_t>(i)[k],
                     args.weights ? args.weights.row<float>(i)[k] : 1.0f);
               if (args.shared) {
                 add(args.shared, i,
                     args.shared_gate ? opened(args.gate_activation, *args.shared_gate.row<float>(i)) : 1.0f);
               }
               kernels.narrow(sum, nullptr, format, at(args.out, i), count);
             });
}

}  // namespace octavo::cpu
