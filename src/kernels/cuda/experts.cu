// The router of mixtures of experts, and the weighted sum of the experts' outputs.
#include "kernels/cuda/views.h"
#include "kernels/operators/experts.h"

namespace octavo::cuda {
namespace {

constexpr int kSortThreads = 256;

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }
__device__ inline float opened(Activation gate, float x) {
  return gate == Activation::softplus ? fmaxf(x, 0) + log1pf(expf(-fabsf(x))) : sigmoid(x);
}

__device__ inline bool by_expert(RouterScores scores) {
  return scores == RouterScores::sigmoid || scores == RouterScores::sqrt_softplus;
}
// Score of an expert if it depends only on the expert's own logit.
__device__ inline float score_of(RouterScores scores, float logit) {
  return scores == RouterScores::sigmoid ? sigmoid(logit)
                                         : sqrtf(fmaxf(logit, 0) + log1pf(expf(-fabsf(logit))));
}

// Returns the largest logit; all lanes of one warp call it.
__device__ inline float greatest(const float* logits, std::int64_t experts) {
  float most = -INFINITY;
  for (std::int64_t e = lane(); e < experts; e += kWarp) most = fmaxf(most, logits[e]);
  for (int step = kWarp / 2; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, step));
  return most;
}

// Computes the keys by which experts are selected: logits, or scores plus bias; minus infinity in groups that
// are not kept. It runs in one warp, and each lane ranks groups.
__device__ void rank_experts(const RouteArgs& p, const float* logits, float* keys) {
  const RouterRule& rule = p.rule;
  const std::int64_t experts = p.logits.size(1);
  const bool softmax = rule.scores == RouterScores::softmax;
  const bool by_logit = !by_expert(rule.scores) && !p.bias && rule.groups == 1;
  float most = 0, sum = 0;
  if (softmax && !by_logit) {
    most = greatest(logits, experts);
    for (std::int64_t e = lane(); e < experts; e += kWarp) sum += expf(logits[e] - most);
    sum = warp_sum(sum);
  }
  for (std::int64_t e = lane(); e < experts; e += kWarp) {
    float key = logits[e];
    if (!by_logit)
      key = (softmax ? expf(key - most) / sum : score_of(rule.scores, key)) +
            (p.bias ? items<float>(p.bias)[e] : 0);
    keys[e] = key > -INFINITY ? key : -INFINITY;  // NaN becomes the smallest key
  }
  __syncthreads();
  if (rule.groups == 1) return;
  const std::int64_t size = experts / rule.groups;
  const auto rank_of = [&](std::int64_t group) {
    float first = -INFINITY, second = -INFINITY;
    for (std::int64_t e = group * size; e < (group + 1) * size; ++e) {
      second = fmaxf(second, fminf(first, keys[e]));
      first = fmaxf(first, keys[e]);
    }
    return rule.group_best > 1 && size > 1 ? first + second : first;
  };
  OCTAVO_SHARED(float, ranks, [kMaxExperts]);
  for (std::int64_t g = lane(); g < rule.groups; g += kWarp) ranks[g] = rank_of(g);
  __syncthreads();
  for (std::int64_t g = lane(); g < rule.groups; g += kWarp) {
    std::int64_t before = 0;
    for (std::int64_t other = 0; other < rule.groups; ++other)
      before += ranks[other] > ranks[g] || (ranks[other] == ranks[g] && other < g);
    if (before < rule.groups_kept) continue;
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e) keys[e] = -INFINITY;
  }
  __syncthreads();
}

// Selects the experts of one token in each warp. Until sort_kernel runs, `pair_rows` contains -1 - expert.
__global__ void choose_kernel(RouteArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, keys, [kMaxExperts]);
  const RouterRule& rule = p.rule;
  const std::int64_t token = block_x(), experts = p.logits.size(1);
  const float* logits = &element<float>(p.logits, token, 0);
  if (!p.given) rank_experts(p, logits, keys);
  const bool softmax = rule.scores == RouterScores::softmax,
             sparse = rule.scores == RouterScores::sparsemixer;
  float* weights = &element<float>(p.weights, token, 0);
  std::int32_t* pair_rows = &element<std::int32_t>(p.pair_rows, token, 0);
  const bool by_order = !p.bias && !p.given;  // the first expert has the greatest logit
  float most = by_order ? 0 : greatest(logits, experts), sum = 0, last = INFINITY;
  std::int64_t last_expert = -1;
  const auto is_chosen = [&](std::int64_t e) {
    return keys[e] > last || (keys[e] == last && e <= last_expert);
  };
  for (int k = 0; k < rule.chosen; ++k) {
    // Finds the next expert in order: greater scores first; of equal scores, the lower index.
    float best = -INFINITY;
    std::int64_t expert = experts;
    for (std::int64_t e = lane(); !p.given && e < experts; e += kWarp) {
      const float key = keys[e];
      if (!is_chosen(e) && (key > best || expert == experts)) {
        best = key;
        expert = e;
      }
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, step);
      const std::int64_t other_expert = __shfl_xor_sync(kAllLanes, expert, step);
      if (other_expert < experts &&
          (expert == experts || other > best || (other == best && other_expert < expert))) {
        best = other;
        expert = other_expert;
      }
    }
    if (p.given) expert = static_cast<std::int64_t>(element<float>(p.given, token, k));
    float near = 0;  // denominator of sparsemixer
    for (std::int64_t e = lane(); sparse && e < experts; e += kWarp) {
      const float logit = logits[e];
      const bool far = (best - logit) / fmaxf(fabsf(logit), best) > 2 * rule.jitter;
      if (!is_chosen(e) && !far) near += expf(logit - best);
    }
    if (sparse) near = warp_sum(near);
    last = best;
    last_expert = expert;
    if (k == 0 && by_order) most = logits[expert];
    const float weight = softmax  ? expf(logits[expert] - most)
                         : sparse ? 1 / near
                                  : score_of(rule.scores, logits[expert]);
    if (rule.renormalise) sum += weight;
    if (lane() == 0) {
      weights[k] = weight;
      pair_rows[k] = static_cast<std::int32_t>(-1 - expert);
    }
  }
  if (!softmax) {
    sum = rule.renormalise ? sum + kLeastSum : 1;
  } else if (!rule.renormalise) {
    for (std::int64_t e = lane(); e < experts; e += kWarp) sum += expf(logits[e] - most);
    sum = warp_sum(sum);
  }
  if (lane() == 0)
    for (int k = 0; k < rule.chosen; ++k)
      weights[k] = weights[k] / sum * rule.scale * (p.scales ? items<float>(p.scales)[-1 - pair_rows[k]] : 1);
}

// Counts and numbers the (token, expert) pairs, in the order of tokens. It runs in one thread block; each
// thread processes some experts.
__global__ void __launch_bounds__(kSortThreads) sort_kernel(RouteArgs p) {
  wait_for_kernels();
  const std::int64_t experts = p.logits.size(1), chosen = p.rule.chosen, pairs = p.logits.size(0) * chosen;
  std::int32_t *pair_rows = items<std::int32_t>(p.pair_rows), *starts = items<std::int32_t>(p.starts);
  for (std::int64_t e = thread(); e < experts; e += kSortThreads) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < pairs; ++i) count += pair_rows[i] == -1 - e;
    starts[e + 1] = count;
  }
  if (thread() == 0) starts[0] = 0;
  __syncthreads();
  if (thread() == 0)
    for (std::int64_t e = 0; e < experts; ++e) starts[e + 1] += starts[e];
  __syncthreads();
  for (std::int64_t e = thread(); e < experts; e += kSortThreads) {
    std::int32_t pair_row = starts[e];
    for (std::int64_t i = 0; pair_row < starts[e + 1]; ++i) {
      if (pair_rows[i] != -1 - e) continue;
      pair_rows[i] = pair_row;
      items<std::int32_t>(p.tokens)[pair_row++] = static_cast<std::int32_t>(i / chosen);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kColumnThreads) combine_kernel(CombineArgs p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), column = column_of_thread();
  if (column >= p.out.size(1)) return;
  float sum = 0;
  for (std::int64_t k = 0; k < p.pair_rows.size(1); ++k)
    sum = fmaf(p.weights ? element<float>(p.weights, row, k) : 1,
               to_float(element<T>(p.y, element<std::int32_t>(p.pair_rows, row, k), column)), sum);
  if (p.shared) {
    const float share = p.shared_gate ? opened(p.gate_activation, items<float>(p.shared_gate)[row]) : 1;
    sum = fmaf(share, to_float(element<T>(p.shared, row, column)), sum);
  }
  element<T>(p.out, row, column) = from_float<T>(sum);
}

}  // namespace

void run_route(Stream& stream, const RouteArgs& args) {
  CHECK(args.pair_rows.contiguous());
  launch(handle_of(stream), row_grid(args.logits.size(0)), kWarp, 0, choose_kernel, args);
  launch(handle_of(stream), dim3(1), kSortThreads, 0, sort_kernel, args);
}

void run_combine(Stream& stream, const CombineArgs& args) {
  for_activation(args.out.dtype, [&](auto t) {
    launch(handle_of(stream), column_grid(args.out.size(0), args.out.size(1)), kColumnThreads, 0,
           combine_kernel<decltype(t)>, args);
  });
}

}  // namespace octavo::cuda
