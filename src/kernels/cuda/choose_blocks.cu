// Selects blocks of tokens for sparse attention (ChooseBlocksArgs).
//
// A thread block processes one head of one query. Each warp computes the scores of some blocks of tokens,
// with a token per lane. Then the thread block finds the selected blocks one after the other, the greatest
// score first.
#include "kernels/cuda/attention_rows.h"
#include "kernels/cuda/step_query.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarp;
constexpr std::int32_t kNoToken = 0x7fffffff;

__device__ float number(const std::byte* key, Format format, int i) {
  if (format == Format::f32) return reinterpret_cast<const float*>(key)[i];
  if (format == Format::f16) return to_float(reinterpret_cast<const F16*>(key)[i]);
  if (format == Format::bf16) return to_float(reinterpret_cast<const Bf16*>(key)[i]);
  if (format == Format::f8) return to_float(reinterpret_cast<const F8*>(key)[i]);
  if (format == Format::levels) return level_at(key, i);
  return static_cast<float>(reinterpret_cast<const signed char*>(key)[i]);  // default is Format::q8
}

template <class T>
__device__ float product(const ChooseBlocksParams& p, const T* q, std::int64_t sequence, std::int64_t token) {
  const KvLayout& layout = p.cache.layout;
  const std::int64_t block =
      p.sequences.tables[p.sequences.table_starts[sequence] + token / layout.block_size];
  const std::int64_t offset = token % layout.block_size;
  const std::byte* key = p.cache.data + layout.vector(block, 0, 0, offset);
  float sum = 0;
  for (int d = 0; d < layout.head_dim; ++d) sum = fmaf(to_float(q[d]), number(key, p.cache.format, d), sum);
  if (!layout.scaled) return sum;
  return sum * *reinterpret_cast<const float*>(p.cache.data + layout.scale(block, 0, 0, offset));
}

// A block of tokens and its score. Greater scores come first; of equal scores, the lower block.
struct Candidate {
  float score;
  std::int32_t block;

  __device__ bool before(const Candidate& other) const {
    return score > other.score || (score == other.score && block < other.block);
  }
};

// Returns the first candidate of the thread block. Every thread must call it.
__device__ Candidate first_of(Candidate mine, Candidate* shared) {
  for (int step = kWarp / 2; step > 0; step /= 2) {
    const Candidate other{__shfl_xor_sync(kAllLanes, mine.score, step),
                          __shfl_xor_sync(kAllLanes, mine.block, step)};
    if (other.before(mine)) mine = other;
  }
  __syncthreads();  // The barrier waits until all threads have read the old values.
  if (lane() == 0) shared[warp()] = mine;
  __syncthreads();
  for (int w = 0; w < kWarps; ++w)
    if (shared[w].before(mine)) mine = shared[w];
  return mine;
}

template <class T>
__global__ void __launch_bounds__(kThreads) choose_blocks_kernel(ChooseBlocksParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(Candidate, shared, [kWarps]);
  float* const scores = reinterpret_cast<float*>(shared_memory());              // [most_blocks]
  auto* const found = reinterpret_cast<std::int32_t*>(scores + p.most_blocks);  // [most]
  const std::int64_t query = block_x(), head = block_y();
  const StepQuery of(p.sequences, p.sequence_count, query);
  std::int32_t* const chosen =
      p.chosen + element_at(query, p.chosen_stride, 0) + element_at(head, p.chosen_head, 0);
  const std::int64_t count = (of.tokens + p.block - 1) / p.block;
  if (count <= p.most) {
    for (std::int64_t i = thread(); i < p.most; i += kThreads)
      chosen[i] = i < count ? static_cast<std::int32_t>(i) : kNoToken;
    return;
  }
  const T* const q =
      static_cast<const T*>(p.q.data) + element_at(query, p.q.stride, 0) + element_at(head, p.q_head, 0);
  for (std::int64_t b = warp(); b < count; b += kWarps) {
    const std::int64_t end = (b + 1) * p.block < of.tokens ? (b + 1) * p.block : of.tokens;
    const bool local = count - 1 - b < p.local;
    float most = local ? INFINITY : kMinusInfinity;
    for (std::int64_t t = b * p.block + lane(); !local && t < end; t += kWarp)
      most = fmaxf(most, product(p, q, of.sequence, t));
    most = warp_max(most);
    if (lane() == 0) scores[b] = most;
  }
  __syncthreads();
  Candidate last{INFINITY, -1};
  for (std::int64_t k = 0; k < p.most; ++k) {
    Candidate best{kMinusInfinity, kNoToken};
    for (std::int64_t b = thread(); b < count; b += kThreads) {
      const Candidate candidate{scores[b], static_cast<std::int32_t>(b)};
      if (last.before(candidate) && candidate.before(best)) best = candidate;
    }
    last = first_of(best, shared);
    if (thread() == 0) found[k] = last.block;
  }
  __syncthreads();
  for (std::int64_t i = thread(); i < p.most; i += kThreads) {
    std::int64_t rank = 0;
    for (std::int64_t k = 0; k < p.most; ++k) rank += found[k] < found[i];
    chosen[rank] = found[i];
  }
}

}  // namespace

void choose_blocks(StreamHandle stream, const ChooseBlocksParams& p) {
  const dim3 grid(static_cast<unsigned>(p.n), static_cast<unsigned>(p.heads));
  const std::size_t bytes = static_cast<std::size_t>(p.most_blocks) * sizeof(float) +
                            static_cast<std::size_t>(p.most) * sizeof(std::int32_t);
  for_activation(p.q.format, [&](auto t) {
    const auto kernel = choose_blocks_kernel<decltype(t)>;
    allow_shared(kernel, bytes);
    launch(stream, grid, kThreads, bytes, kernel, p);
  });
}

}  // namespace octavo::cuda
