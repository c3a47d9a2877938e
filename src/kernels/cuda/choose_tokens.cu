// The indexer of sparse attention: computes the scores of all tokens that a query may see, and selects the
// greatest ones.
//
// One thread computes one score, adding heads in ascending order. A radix selection, which makes four passes
// over bins of eight bits, finds the last selected token. If scores are equal, the lower position wins.
// With compressed entries (KvSpec::rate), tokens are entries.
#include "kernels/cuda/step_query.h"

namespace octavo::cuda {
namespace {

constexpr int kScoreThreads = 128, kChooseThreads = 512;
constexpr int kChooseWarps = kChooseThreads / kWarp;
constexpr std::int32_t kNoToken = 0x7fffffff;

// Returns the query's sequence, and the number of tokens or compressed entries that the query may see.
__device__ inline StepQuery query_of(const ChooseParams& p, std::int64_t query) {
  StepQuery of(p.sequences, p.sequence_count, query);
  of.tokens /= p.rate;
  return of;
}

__device__ float number(const std::byte* key, Format format, int i) {
  if (format == Format::f32) return reinterpret_cast<const float*>(key)[i];
  if (format == Format::f16) return to_float(reinterpret_cast<const F16*>(key)[i]);
  if (format == Format::bf16) return to_float(reinterpret_cast<const Bf16*>(key)[i]);
  if (format == Format::f8) return to_float(reinterpret_cast<const F8*>(key)[i]);
  return static_cast<float>(reinterpret_cast<const signed char*>(key)[i]);  // default is Format::q8
}

// Computes scores, one token per thread.
template <class T>
__global__ void __launch_bounds__(kScoreThreads) score_kernel(ChooseParams p, std::int64_t first_query) {
  wait_for_kernels();
  const std::int64_t query = first_query + block_y(), token = block_x() * kScoreThreads + thread();
  const StepQuery of = query_of(p, query);
  if (of.tokens <= p.most || token >= of.tokens)
    return;  // no score is needed: all tokens are selected, or
             // the token does not exist
  const KvLayout& layout = p.cache.layout;
  const std::int64_t block =
      p.sequences.tables[p.sequences.table_starts[of.sequence] + token / layout.block_size];
  const std::int64_t offset = token % layout.block_size;
  const std::byte* key =
      p.cache.data + layout.vector(block, 0, 0, offset) + layout.score_dim() * layout.bits / 8;
  const float scale =
      layout.scaled ? *reinterpret_cast<const float*>(p.cache.data + layout.scale(block, 0, 0, offset)) : 1;
  const T* q = static_cast<const T*>(p.q.data) + element_at(query, p.q.stride, 0);
  const float* weights = static_cast<const float*>(p.weights.data) + element_at(query, p.weights.stride, 0);
  float score = 0;
  for (std::int64_t head = 0; head < p.heads; ++head) {
    float product = 0;
    for (int d = 0; d < layout.index_dim; ++d)
      product = fmaf(to_float(q[element_at(head, p.q_head, d)]), number(key, p.cache.format, d), product);
    score = fmaf(weights[head], fmaxf(product * scale, 0), score);
  }
  p.scores[element_at(block_y(), p.score_stride, token)] = score;
}

// Returns the sort key of a score. NaN comes last; minus zero equals zero.
__device__ std::uint32_t rank_of(float score) {
  const std::uint32_t bits = float_to_bits(score == score ? score + 0.0f : -INFINITY);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

// Number of tokens above a rank, and number of tokens with this rank.
struct Counts {
  std::int32_t above, at;
};

// Rank of the last selected token, and the number of selected tokens with this rank.
struct LastRank {
  std::uint32_t rank;
  int count;
};

struct RankSearch {
  int bins[256];
  LastRank last;  // rank: bits that are known so far; count: number of tokens still to select among those
                  // with these bits
};

__device__ LastRank find_last(RankSearch& search, const float* scores, std::int64_t tokens,
                              std::int64_t most) {
  if (thread() == 0) search.last = {0, static_cast<int>(most)};
  for (int shift = 24; shift >= 0; shift -= 8) {
    for (int i = thread(); i < 256; i += kChooseThreads) search.bins[i] = 0;
    __syncthreads();
    const std::uint32_t known = shift == 24 ? 0 : ~0U << (shift + 8), so_far = search.last.rank;
    for (std::int64_t t = thread(); t < tokens; t += kChooseThreads)
      if (const std::uint32_t rank = rank_of(scores[t]); (rank & known) == so_far)
        atomicAdd(&search.bins[rank >> shift & 255], 1);
    __syncthreads();
    if (thread() == 0) {
      int bin = 255;
      for (; search.bins[bin] < search.last.count; --bin) search.last.count -= search.bins[bin];
      search.last.rank = so_far | static_cast<std::uint32_t>(bin) << shift;
    }
    __syncthreads();
  }
  return search.last;
}

__global__ void __launch_bounds__(kChooseThreads) choose_kernel(ChooseParams p, std::int64_t first_query) {
  wait_for_kernels();
  OCTAVO_SHARED(RankSearch, search, );
  OCTAVO_SHARED(Counts, counts, [kChooseWarps]);
  const std::int64_t query = first_query + block_x();
  const StepQuery of = query_of(p, query);
  std::int32_t* chosen = p.chosen + element_at(query, p.chosen_stride, 0);
  if (of.tokens <= p.most) {
    for (std::int64_t i = thread(); i < p.most; i += kChooseThreads)
      chosen[i] = i < of.tokens ? static_cast<std::int32_t>(i) : kNoToken;
    return;
  }
  const float* scores = p.scores + element_at(block_x(), p.score_stride, 0);
  const LastRank last = find_last(search, scores, of.tokens, p.most);

  // Each warp has a range of consecutive tokens. It computes the number of tokens that the warps before it
  // select.
  const std::int64_t run = (of.tokens + kChooseThreads - 1) / kChooseThreads * kWarp;
  const std::int64_t begin = warp() * run, end = begin + run < of.tokens ? begin + run : of.tokens;
  const auto ballots = [&](std::int64_t t, std::uint32_t& above, std::uint32_t& at) {
    const bool valid = t + lane() < end;
    const std::uint32_t rank = valid ? rank_of(scores[t + lane()]) : 0;
    above = __ballot_sync(kAllLanes, valid && rank > last.rank);
    at = __ballot_sync(kAllLanes, valid && rank == last.rank);
  };
  std::uint32_t above, equal;
  Counts own{0, 0};
  for (std::int64_t t = begin; t < end; t += kWarp) {
    ballots(t, above, equal);
    own.above += __popc(above);
    own.at += __popc(equal);
  }
  if (lane() == 0) counts[warp()] = own;
  __syncthreads();
  Counts before{0, 0};
  for (int w = 0; w < warp(); ++w) {
    before.above += counts[w].above;
    before.at += counts[w].at;
  }
  const std::uint32_t lower = (1U << lane()) - 1, self = 1U << lane();
  for (std::int64_t t = begin; t < end; t += kWarp) {
    ballots(t, above, equal);
    const int equal_before = before.at + __popc(equal & lower);
    if ((above & self) != 0 || ((equal & self) != 0 && equal_before < last.count))
      chosen[before.above + __popc(above & lower) + (equal_before < last.count ? equal_before : last.count)] =
          static_cast<std::int32_t>(t + lane());
    before.above += __popc(above);
    before.at += __popc(equal);
  }
}

}  // namespace

void choose_tokens(StreamHandle stream, const ChooseParams& p) {
  const auto pieces = static_cast<unsigned>((p.longest + kScoreThreads - 1) / kScoreThreads);
  constexpr std::int64_t kMostRows = 65535;  // maximum size of the grid's second dimension
  const std::int64_t most = p.queries_at_once < kMostRows ? p.queries_at_once : kMostRows;
  for (std::int64_t first = 0; first < p.n; first += most) {
    const auto count = static_cast<unsigned>(p.n - first < most ? p.n - first : most);
    for_activation(p.q.format, [&](auto t) {
      launch(stream, {pieces, count}, kScoreThreads, 0, score_kernel<decltype(t)>, p, first);
    });
    launch(stream, {count}, kChooseThreads, 0, choose_kernel, p, first);
  }
}

}  // namespace octavo::cuda
