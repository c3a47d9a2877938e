// The router of mixtures of experts, and the weighted sum of the experts' outputs.
#include "kernels/cuda/gpu.h"
#include "kernels/router.h"

namespace octavo::cuda {
namespace {

constexpr int kSortThreads = 256, kCombineThreads = 256;

__device__ inline float sigmoid(float x) { return 1 / (1 + expf(-x)); }

// Returns the largest logit; all lanes of one warp call it.
__device__ inline float greatest(const float* logits, std::int64_t experts) {
  float most = -INFINITY;
  for (std::int64_t e = lane(); e < experts; e += kWarp) most = fmaxf(most, logits[e]);
  for (int step = kWarp / 2; step > 0; step /= 2) most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, step));
  return most;
}

// Computes the keys by which experts are selected: logits, or scores plus bias; minus infinity in groups that
// are not kept. It runs in one warp, and each lane ranks groups.
__device__ void rank_experts(const RouteParams& p, const float* logits, float* keys) {
  const bool softmax = p.scores == RouterScores::softmax;
  const bool by_logit = p.scores != RouterScores::sigmoid && p.bias == nullptr && p.groups == 1;
  float most = 0, sum = 0;
  if (softmax && !by_logit) {
    most = greatest(logits, p.experts);
    for (std::int64_t e = lane(); e < p.experts; e += kWarp) sum += expf(logits[e] - most);
    sum = warp_sum(sum);
  }
  for (std::int64_t e = lane(); e < p.experts; e += kWarp) {
    float key = logits[e];
    if (!by_logit)
      key = (softmax ? expf(key - most) / sum : sigmoid(key)) + (p.bias != nullptr ? p.bias[e] : 0);
    keys[e] = key > -INFINITY ? key : -INFINITY;  // NaN becomes the smallest key
  }
  __syncthreads();
  if (p.groups == 1) return;
  const std::int64_t size = p.experts / p.groups;
  const auto rank_of = [&](std::int64_t group) {
    float first = -INFINITY, second = -INFINITY;
    for (std::int64_t e = group * size; e < (group + 1) * size; ++e) {
      second = fmaxf(second, fminf(first, keys[e]));
      first = fmaxf(first, keys[e]);
    }
    return p.group_best > 1 && size > 1 ? first + second : first;
  };
  OCTAVO_SHARED(float, ranks, [kMaxExperts]);
  for (std::int64_t g = lane(); g < p.groups; g += kWarp) ranks[g] = rank_of(g);
  __syncthreads();
  for (std::int64_t g = lane(); g < p.groups; g += kWarp) {
    std::int64_t before = 0;
    for (std::int64_t other = 0; other < p.groups; ++other)
      before += ranks[other] > ranks[g] || (ranks[other] == ranks[g] && other < g);
    if (before < p.groups_kept) continue;
    for (std::int64_t e = g * size; e < (g + 1) * size; ++e) keys[e] = -INFINITY;
  }
  __syncthreads();
}

// Selects the experts of one token in each warp. Until sort_kernel runs, `places` contains -1 - expert.
__global__ void choose_kernel(RouteParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, keys, [kMaxExperts]);
  const std::int64_t token = block_x();
  const float* logits = static_cast<const float*>(p.logits.data) + element_at(token, p.logits.stride, 0);
  rank_experts(p, logits, keys);
  const bool softmax = p.scores == RouterScores::softmax, sparse = p.scores == RouterScores::sparsemixer;
  float* weights = static_cast<float*>(p.weights.data) + element_at(token, p.weights.stride, 0);
  std::int32_t* places = p.places + element_at(token, p.chosen, 0);
  float most = p.bias == nullptr ? 0 : greatest(logits, p.experts), sum = 0, last = INFINITY;
  std::int64_t last_expert = -1;
  const auto is_chosen = [&](std::int64_t e) {
    return keys[e] > last || (keys[e] == last && e <= last_expert);
  };
  for (int k = 0; k < p.chosen; ++k) {
    // Finds the next expert in order: greater scores first; of equal scores, the lower index.
    float best = -INFINITY;
    std::int64_t expert = p.experts;
    for (std::int64_t e = lane(); e < p.experts; e += kWarp) {
      const float key = keys[e];
      if (!is_chosen(e) && (key > best || expert == p.experts)) {
        best = key;
        expert = e;
      }
    }
    for (int step = kWarp / 2; step > 0; step /= 2) {
      const float other = __shfl_xor_sync(kAllLanes, best, step);
      const std::int64_t other_expert = __shfl_xor_sync(kAllLanes, expert, step);
      if (other_expert < p.experts &&
          (expert == p.experts || other > best || (other == best && other_expert < expert))) {
        best = other;
        expert = other_expert;
      }
    }
    float near = 0;  // denominator of sparsemixer
    for (std::int64_t e = lane(); sparse && e < p.experts; e += kWarp) {
      const float logit = logits[e];
      const bool far = (best - logit) / fmaxf(fabsf(logit), best) > 2 * p.jitter;
      if (!is_chosen(e) && !far) near += expf(logit - best);
    }
    if (sparse) near = warp_sum(near);
    last = best;
    last_expert = expert;
    if (k == 0 && p.bias == nullptr) most = logits[expert];
    const float weight = softmax   ? expf(logits[expert] - most)
                         : sparse ? 1 / near
                                  : sigmoid(logits[expert]);
    if (p.renormalise) sum += weight;
    if (lane() == 0) {
      weights[k] = weight;
      places[k] = static_cast<std::int32_t>(-1 - expert);
    }
  }
  if (!softmax) {
    sum = p.renormalise ? sum + kLeastSum : 1;
  } else if (!p.renormalise) {
    for (std::int64_t e = lane(); e < p.experts; e += kWarp) sum += expf(logits[e] - most);
    sum = warp_sum(sum);
  }
  if (lane() == 0)
    for (int k = 0; k < p.chosen; ++k)
      weights[k] = weights[k] / sum * p.scale * (p.scales != nullptr ? p.scales[-1 - places[k]] : 1);
}

// Counts and numbers the (token, expert) pairs, in the order of tokens. It runs in one thread block; each
// thread processes some experts.
__global__ void __launch_bounds__(kSortThreads) sort_kernel(RouteParams p) {
  wait_for_kernels();
  const std::int64_t pairs = p.n * p.chosen;
  for (std::int64_t e = thread(); e < p.experts; e += kSortThreads) {
    std::int32_t count = 0;
    for (std::int64_t i = 0; i < pairs; ++i) count += p.places[i] == -1 - e;
    p.starts[e + 1] = count;
  }
  if (thread() == 0) p.starts[0] = 0;
  __syncthreads();
  if (thread() == 0)
    for (std::int64_t e = 0; e < p.experts; ++e) p.starts[e + 1] += p.starts[e];
  __syncthreads();
  for (std::int64_t e = thread(); e < p.experts; e += kSortThreads) {
    std::int32_t place = p.starts[e];
    for (std::int64_t i = 0; place < p.starts[e + 1]; ++i) {
      if (p.places[i] != -1 - e) continue;
      p.places[i] = place;
      p.tokens[place++] = static_cast<std::int32_t>(i / p.chosen);
    }
  }
}

template <class T>
__global__ void __launch_bounds__(kCombineThreads) combine_kernel(CombineParams p) {
  wait_for_kernels();
  const std::int64_t row = block_x(), column = block_y() * kCombineThreads + thread();
  if (column >= p.dim) return;
  const auto number = [&](const Rows& rows, std::int64_t r) {
    return to_float(static_cast<const T*>(rows.data)[element_at(r, rows.stride, column)]);
  };
  float sum = 0;
  const auto* weights = static_cast<const float*>(p.weights.data);
  for (std::int64_t k = 0; k < p.chosen; ++k)
    sum = fmaf(weights != nullptr ? weights[element_at(row, p.weights.stride, k)] : 1,
               number(p.y, p.places[element_at(row, p.chosen, k)]), sum);
  if (p.shared.data != nullptr) {
    const float share = p.shared_gate != nullptr ? 1 / (1 + expf(-p.shared_gate[row])) : 1;
    sum = fmaf(share, number(p.shared, row), sum);
  }
  static_cast<T*>(p.out.data)[element_at(row, p.out.stride, column)] = from_float<T>(sum);
}

}  // namespace

void route(StreamHandle stream, const RouteParams& p) {
  launch(stream, dim3(static_cast<unsigned>(p.n)), kWarp, 0, choose_kernel, p);
  launch(stream, dim3(1), kSortThreads, 0, sort_kernel, p);
}

void combine(StreamHandle stream, const CombineParams& p) {
  const dim3 grid(static_cast<unsigned>(p.n),
                  static_cast<unsigned>((p.dim + kCombineThreads - 1) / kCombineThreads));
  for_activation(p.out.format,
                 [&](auto t) { launch(stream, grid, kCombineThreads, 0, combine_kernel<decltype(t)>, p); });
}

}  // namespace octavo::cuda
