// Common code of all attention kernels: the range of tokens that a row sees, and the merge of pieces.
//
// Keys are processed in pieces of kPieceTokens tokens, aligned to multiples of kPieceTokens. The result of
// each piece starts from zero, and pieces are merged into a row's state in order. So the bits of a row
// depend neither on tiles, nor on the split of pieces (attention_plan.h), nor on the prefill chunk of the
// query.
#pragma once

#include "kernels/cuda/gpu.h"
#include "kernels/kv_codes.h"

namespace octavo::cuda {

constexpr float kMinusInfinity = -INFINITY;

constexpr float kLog2E = 1.44269504f;

// Returns 2^x; subnormal results become zero.
__device__ inline float power_of_2(float x) {
#ifdef __CUDACC__
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return exp2f(x);
#endif
}
__device__ inline float exponential(float x) { return power_of_2(x * kLog2E); }

// The rows of one sequence and one KV head, with row = query * group + index of the head in its group.
// Fields have 32 bits, because 64-bit divisions are slow. If `shared` is not null, the queries are those of a
// unit of several sequences (AttentionUnit::shared), and `table` is that of one of these sequences.
struct SequenceRows {
  int first_query;  // index in the step of the sequence's first query
  int first_position, length;
  int group, window, chunk;
  bool causal;
  const std::int32_t* table;
  const std::int32_t* chosen;
  std::int64_t chosen_stride, chosen_head_stride;
  int chosen_most, chosen_run;
  const SharedQuery* shared;

  __device__ SequenceRows(const AttentionParams& p, std::int64_t s, const SharedQuery* of_shared = nullptr)
      : first_query(p.sequences.query_starts[s]),
        first_position(p.sequences.lengths[s] -
                       (p.sequences.query_starts[s + 1] - p.sequences.query_starts[s])),
        length(p.sequences.lengths[s]),
        group(p.group),
        window(p.window),
        chunk(p.chunk),
        causal(p.causal),
        table(p.sequences.tables + p.sequences.table_starts[s]),
        chosen(p.chosen),
        chosen_stride(p.chosen_stride),
        chosen_head_stride(p.chosen_head_stride),
        chosen_most(static_cast<int>(p.chosen_most)),
        chosen_run(p.chosen_run),
        shared(of_shared) {}

  // Range [begin, end) of tokens that a row sees. In sparse attention, begin and end are indices into the
  // row's selected tokens, and token(row, head, i) returns the i-th selected token. The last run of selected
  // tokens ends with the row's own token.
  __device__ int begin(int row) const {
    if (chunk > 0) return position(row) / chunk * chunk;
    return window > 0 && position(row) >= window ? position(row) + 1 - window : 0;
  }
  __device__ int end(int row) const {
    if (chosen != nullptr && position(row) / chosen_run >= chosen_most)
      return (chosen_most - 1) * chosen_run + (chosen_run > 1 ? position(row) % chosen_run + 1 : 1);
    if (causal) return position(row) + 1;
    return window > 0 && window < length - position(row) ? position(row) + window : length;
  }
  __device__ int token(int row, int head, int i) const {
    if (chosen == nullptr) return i;
    const std::int32_t* const runs = chosen + query(row) * chosen_stride + head * chosen_head_stride;
    return chosen_run > 1 ? runs[i / chosen_run] * chosen_run + i % chosen_run : runs[i];
  }
  __device__ int position(int row) const {
    return shared == nullptr ? first_position + row / group : shared[row / group].position;
  }
  // Returns the column in q and out at which the head of `row` begins. `head` is the KV head.
  __device__ int column(int row, int head, int head_dim) const { return (head * group + row % group) * head_dim; }
  __device__ int query(int row) const {
    return shared == nullptr ? first_query + row / group : shared[row / group].query;
  }
};

// Weights of a row's state and of a piece when the piece is merged into the state. A maximum of minus
// infinity marks an empty state or piece.
struct Weights {
  float max, state, piece;
};
__device__ inline Weights weigh(float state_max, float piece_max) {
  if (piece_max == kMinusInfinity) return {state_max, 1, 0};
  const float max = fmaxf(state_max, piece_max);
  return {max, exponential(state_max - max), exponential(piece_max - max)};
}
__device__ inline float merged(float state, float piece, const Weights& w) {
  return fmaf(piece, w.piece, state * w.state);
}

// Range [begin, end) of the pieces that at least one of the rows [first, last] sees.
struct Pieces {
  int begin, end;
};
__device__ inline Pieces pieces_of(const SequenceRows& rows, int first, int last) {
  return {rows.begin(first) / kPieceTokens, (rows.end(last) + kPieceTokens - 1) / kPieceTokens};
}

// `slope` is the ALiBi slope of the row. `ahead` is the position of the key minus the position of the
// query.
__device__ inline float score_of(const AttentionParams& p, float product, float slope, int ahead) {
  const float score = product * p.scale;
  if (p.slopes != nullptr) return fmaf(slope, static_cast<float>(ahead), score);
  return p.soft_cap > 0 ? p.soft_cap * tanhf(score / p.soft_cap) : score;
}

__device__ inline float slope_of(const AttentionParams& p, std::int64_t head, int row) {
  return p.slopes == nullptr ? 0 : p.slopes[head * p.group + row % p.group];
}

// Relative position biases of one row (AttentionArgs::distance_bias). Latent attention on tensor cores does
// not support them.
struct DistanceBias {
  const float* numbers;  // number for distance 0
  int furthest, position;

  // `head` is the KV head. `row` may be a row that does not exist.
  __device__ DistanceBias(const AttentionParams& p, const SequenceRows& rows, std::int64_t head, int row)
      : furthest(p.distance_bias.furthest), position(rows.position(row)) {
    numbers =
        p.distance_bias.numbers + element_at(head * p.group + row % p.group, 2 * furthest + 1, furthest);
  }
  __device__ float of(int token) const {
    const int distance = token - position;
    return numbers[distance < -furthest ? -furthest : distance > furthest ? furthest : distance];
  }
};

// Returns the factor by which the row's weighted values are multiplied at the end: 1 / softmax sum, where
// the sum includes the attention sink of the head.
__device__ inline float inverse_sum(const AttentionParams& p, std::int64_t head, int row, float max, float sum) {
  return 1 / (p.sinks == nullptr ? sum : sum + exponential(p.sinks[head * p.group + row % p.group] - max));
}

// Returns the address of a row's state for a piece. The state begins with value_dim values; the maximum is at
// index head_dim, and the sum after it. `row` is a row of the merge's sequence.
__device__ inline float* state_of(const AttentionParams& p, const AttentionMerge& m, std::int64_t head,
                                  std::int64_t row, std::int64_t piece) {
  return p.work.states + state_at(m.first_state, m.row_end - m.row_begin, m.piece_end - m.piece_begin, head,
                                  row - m.row_begin, piece - m.piece_begin, p.cache.layout.head_dim);
}

__device__ inline const std::byte* cached(const AttentionParams& p, const SequenceRows& rows, int which,
                                          std::int64_t head, int token) {
  const KvLayout& layout = p.cache.layout;
  return p.cache.data +
         layout.vector(rows.table[token / layout.block_size], which, head, token % layout.block_size);
}

// Returns element i of a vector of 4-bit codes, without the scale.
__device__ inline float level_at(const std::byte* vector, int i) {
  const auto codes = static_cast<unsigned>(vector[i / 2]);
  return static_cast<float>(kv_level(i % 2 == 0 ? codes & 15 : codes >> 4));
}

// Returns the scale of a cached vector, or 1 if the cache has no scales.
__device__ inline float cached_scale(const AttentionParams& p, const SequenceRows& rows, int which,
                                     std::int64_t head, int token) {
  const KvLayout& layout = p.cache.layout;
  if (!layout.scaled) return 1;
  return *reinterpret_cast<const float*>(
      p.cache.data +
      layout.scale(rows.table[token / layout.block_size], which, head, token % layout.block_size));
}

// In attention_plain.cu.
void attention_plain(StreamHandle stream, const AttentionParams& p);

// In attention_wgmma.cu, for wide units if AttentionWork::wide_by_wgmma.
void attention_wgmma(StreamHandle stream, const AttentionParams& p);

// In attention_latent.cu, for latent attention in 16 bits. takes_latent() returns true if the kernel
// supports the dimensions.
bool takes_latent(const AttentionParams& p);
void attention_latent(StreamHandle stream, const AttentionParams& p);

}  // namespace octavo::cuda
