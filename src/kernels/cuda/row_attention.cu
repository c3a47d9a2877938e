// Attention for caches in which keys are also the values (KvSpec::shared_rows), in f32 without tensor cores.
// A query sees the last tokens, and then compressed entries of several tokens.
//
// A thread block processes kHeads heads of one query. It reads rows in pieces of kPieceTokens: thread j
// computes the scores of row j of the piece, then the columns j, j + 128 .. of the weighted rows. Pieces are
// merged in order, so the bits of a query do not depend on the division of the sequence into steps.
#include "kernels/cuda/attention_rows.h"
#include "kernels/cuda/norm_rows.h"
#include "kernels/cuda/step_query.h"
#include "kernels/operators/attention.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = kPieceTokens, kHeads = 4;

__device__ float row_number(const std::byte* row, Format format, std::int64_t i) {
  if (format == Format::f16) return to_float(reinterpret_cast<const F16*>(row)[i]);
  if (format == Format::bf16) return to_float(reinterpret_cast<const Bf16*>(row)[i]);
  return reinterpret_cast<const float*>(row)[i];
}
__device__ void put_row_number(std::byte* row, Format format, std::int64_t i, float x) {
  if (format == Format::f16) {
    reinterpret_cast<F16*>(row)[i] = from_float<F16>(x);
  } else if (format == Format::bf16) {
    reinterpret_cast<Bf16*>(row)[i] = from_float<Bf16>(x);
  } else {
    reinterpret_cast<float*>(row)[i] = x;
  }
}

__device__ const std::byte* cached_row(const KvCache& cache, const SequenceTables& sequences,
                                       std::int64_t sequence, std::int64_t entry) {
  const std::int64_t block =
      sequences.tables[sequences.table_starts[sequence] + entry / cache.layout.block_size];
  return cache.data + cache.layout.vector(block, 0, 0, entry % cache.layout.block_size);
}

// The rows that a query sees: first tokens, then entries.
struct SeenRows {
  const RowAttentionParams& p;
  const StepQuery of;
  const std::int64_t first_token, tokens, count;
  const std::int32_t* chosen;

  __device__ SeenRows(const RowAttentionParams& params, std::int64_t query)
      : p(params),
        of(params.sequences, params.sequence_count, query),
        first_token(params.window > 0 && of.tokens > params.window ? of.tokens - params.window : 0),
        tokens(of.tokens - first_token),
        count(tokens + entries()),
        chosen(params.chosen == nullptr ? nullptr
                                        : params.chosen + element_at(query, params.chosen_stride, 0)) {}

  // Number of entries that the query sees. ChooseTokensArgs selects as many as possible.
  __device__ std::int64_t entries() const {
    if (p.entries.data == nullptr) return 0;
    const std::int64_t all = of.tokens / p.rate;
    return p.chosen != nullptr && all > p.chosen_most ? p.chosen_most : all;
  }
  __device__ const std::byte* row(std::int64_t i) const {
    if (i < tokens) return cached_row(p.cache, p.sequences, of.sequence, first_token + i);
    const std::int64_t entry = chosen == nullptr ? i - tokens : chosen[i - tokens];
    return cached_row(p.entries, p.entry_sequences, of.sequence, entry);
  }
};

struct SharedRows {
  float queries[kHeads][kMaxRowDim];
  float probabilities[kHeads][kPieceTokens];
  const std::byte* rows[kPieceTokens];
  float partials[kWarp];
};

// Computes the products of the queries with this thread's row of a piece of `count` rows. `i` is the index of
// the row among those that the query sees.
__device__ void score_row(const SeenRows& seen, std::int64_t i, int count, SharedRows& shared,
                          float (&scores)[kHeads]) {
#pragma unroll
  for (int h = 0; h < kHeads; ++h) scores[h] = thread() < count ? 0 : kMinusInfinity;
  if (thread() >= count) return;
  const std::byte* const row = seen.row(i);
  shared.rows[thread()] = row;
  for (std::int64_t d = 0; d < seen.p.dim; ++d) {
    const float x = row_number(row, seen.p.cache.format, d);
#pragma unroll
    for (int h = 0; h < kHeads; ++h) scores[h] = fmaf(shared.queries[h][d], x, scores[h]);
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) row_attention_kernel(RowAttentionParams p) {
  wait_for_kernels();
  OCTAVO_SHARED(SharedRows, shared, );
  constexpr int kPerThread = kMaxRowDim / kThreads;
  const std::int64_t query = block_x(), first_head = block_y() * kHeads, dim = p.dim;
  const int heads = p.heads - first_head < kHeads ? static_cast<int>(p.heads - first_head) : kHeads;
  const SeenRows seen(p, query);
  if (seen.of.tokens == 0) return;  // padding
  const T* const q = static_cast<const T*>(p.q.data) + element_at(query, p.q.stride, first_head * dim);
  for (std::int64_t i = thread(); i < kHeads * dim; i += kThreads)
    shared.queries[i / dim][i % dim] = i < heads * dim ? to_float(q[i]) : 0;
  float max[kHeads], sum[kHeads], values[kHeads][kPerThread];
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    max[h] = kMinusInfinity;
    sum[h] = 0;
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) values[h][j] = 0;
  }
#pragma unroll 1
  for (std::int64_t first = 0; first < seen.count; first += kPieceTokens) {
    __syncthreads();  // The barrier waits until all threads have used the previous piece.
    const int count = seen.count - first < kPieceTokens ? static_cast<int>(seen.count - first) : kPieceTokens;
    float scores[kHeads];
    score_row(seen, first + thread(), count, shared, scores);
    Weights weights[kHeads];
#pragma unroll
    for (int h = 0; h < kHeads; ++h) {
      const float score = scores[h] * p.scale, piece_max = block_max(score, shared.partials);
      const float shift = piece_max == kMinusInfinity ? 0 : piece_max;
      shared.probabilities[h][thread()] = exponential(score - shift);
      const float piece_sum = block_sum(shared.probabilities[h][thread()], shared.partials);
      weights[h] = weigh(max[h], piece_max);
      max[h] = weights[h].max;
      sum[h] = merged(sum[h], piece_sum, weights[h]);
    }
    __syncthreads();
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const std::int64_t d = thread() + j * kThreads;
      if (d >= dim) break;
      float mixed[kHeads] = {};
      for (int t = 0; t < count; ++t) {
        const float x = row_number(shared.rows[t], p.cache.format, d);
#pragma unroll
        for (int h = 0; h < kHeads; ++h) mixed[h] = fmaf(shared.probabilities[h][t], x, mixed[h]);
      }
#pragma unroll
      for (int h = 0; h < kHeads; ++h) values[h][j] = merged(values[h][j], mixed[h], weights[h]);
    }
  }
#pragma unroll
  for (int h = 0; h < kHeads; ++h) {
    if (h >= heads) break;
    const std::int64_t head = first_head + h;
    const float sink = p.sinks == nullptr ? 0 : exponential(p.sinks[head] - max[h]);
    T* const out = static_cast<T*>(p.out.data) + element_at(query, p.out.stride, head * dim);
#pragma unroll
    for (int j = 0; j < kPerThread; ++j) {
      const std::int64_t d = thread() + j * kThreads;
      if (d < dim) out[d] = from_float<T>(values[h][j] / (sum[h] + sink));
    }
  }
}

// Normalises a row and rotates its end; see RotateEndsArgs. value(i) returns an element, and put(i, x) writes
// it. A thread block processes a row.
template <class Value, class Put>
__device__ void rotate_row(const Norm& norm, std::int64_t dim, const View& frequencies, float scale,
                           std::int32_t position, bool back, float* partials, Value value, Put put) {
  Moments m{0, 1};
  if (norm.kind != NormKind::none) m = moments_of<kThreads>(norm.kind, norm.eps, dim, partials, value);
  const auto normed = [&](std::int64_t i) {
    return norm.kind == NormKind::none ? value(i) : normalized(norm, m, value(i), i);
  };
  const std::int64_t pairs = frequencies.size(0), first = dim - 2 * pairs;
  for (std::int64_t i = thread(); i < first; i += kThreads) put(i, normed(i));
  for (std::int64_t pair = thread(); pair < pairs; pair += kThreads) {
    const float angle = static_cast<float>(position) * items<float>(frequencies)[pair];
    const float c = cosf(angle) * scale, s = sinf(angle) * (back ? -scale : scale);
    const std::int64_t at = first + 2 * pair;
    const float a = normed(at), b = normed(at + 1);
    put(at, fmaf(a, c, -(b * s)));
    put(at + 1, fmaf(b, c, a * s));
  }
}

template <class T>
__global__ void __launch_bounds__(kThreads) rotate_ends_kernel(RotateEndsArgs p) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t token = block_x();
  T* const x = &element<T>(p.x, token, element_at(block_y(), p.x.stride[1], 0));
  rotate_row(
      p.norm, p.x.size(2), p.frequencies, p.scale, items<std::int32_t>(p.positions)[token], p.back, partials,
      [&](std::int64_t i) { return to_float(x[i]); },
      [&](std::int64_t i, float value) { x[i] = from_float<T>(value); });
}

__global__ void __launch_bounds__(kThreads) store_rows_kernel(StoreRowsArgs p, KvCache cache) {
  wait_for_kernels();
  OCTAVO_SHARED(float, partials, [kWarp]);
  const std::int64_t token = block_x();
  const int rate = p.cache.spec.rate, block_size = p.cache.spec.block_size;
  const std::int32_t position = items<std::int32_t>(p.positions)[token];
  if ((position + 1) % rate != 0) return;
  const std::int64_t slot = items<std::int64_t>(p.slots)[token];
  std::byte* const row = cache.data + cache.layout.vector(slot / block_size, 0, 0, slot % block_size / rate);
  const float* const x = &element<float>(p.x, token, 0);
  rotate_row(
      p.norm, p.x.size(1), p.frequencies, p.scale, position + 1 - rate, false, partials,
      [&](std::int64_t i) { return x[i]; },
      [&](std::int64_t i, float value) { put_row_number(row, cache.format, p.first + i, value); });
}

}  // namespace

void row_attention(StreamHandle stream, const RowAttentionParams& p) {
  const dim3 grid(static_cast<unsigned>(p.n), static_cast<unsigned>((p.heads + kHeads - 1) / kHeads));
  for_activation(p.q.format,
                 [&](auto t) { launch(stream, grid, kThreads, 0, row_attention_kernel<decltype(t)>, p); });
}

void run_rotate_ends(Stream& stream, const RotateEndsArgs& args) {
  const dim3 grid(static_cast<unsigned>(args.x.size(0)), static_cast<unsigned>(args.x.size(1)));
  for_activation(args.x.dtype, [&](auto t) {
    launch(handle_of(stream), grid, kThreads, 0, rotate_ends_kernel<decltype(t)>, args);
  });
}

void run_store_rows(Stream& stream, const StoreRowsArgs& args) {
  launch(handle_of(stream), row_grid(args.x.size(0)), kThreads, 0, store_rows_kernel, args,
         cache_of(args.cache));
}

}  // namespace octavo::cuda
