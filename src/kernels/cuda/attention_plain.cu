// Attention in f32 without tensor cores, one row at a time. It is used for f32 activations, for caches whose
// 16-bit format differs from that of the activations, for latent attention that attention_latent.cu does not
// support, for keys wider than kMaxTiledKey, and for selected blocks of tokens. Thread j computes the score
// of token j of the piece, then the dimensions j, j + 128 .. of the weighted values.
#include "kernels/cuda/attention_rows.h"

namespace octavo::cuda {
namespace {

constexpr int kThreads = kPieceTokens;

// A row of a unit: the sequence, the index of the row in the sequence, and AttentionUnit::merge.
struct OwnRow {
  int sequence, row, merge;

  __device__ OwnRow(const AttentionParams& p, const AttentionUnit& unit, int row_of_unit)
      : sequence(unit.sequence), row(row_of_unit), merge(unit.merge) {
    if (!unit.shared) return;
    const SharedQuery& query = p.work.shared[row_of_unit / p.group];
    sequence = query.sequence;
    row = query.row + row_of_unit % p.group;
    merge = query.merge;
  }
};

__device__ float number(const std::byte* vector, Format format, int i) {
  switch (format) {
    case Format::f32:
      return reinterpret_cast<const float*>(vector)[i];
    case Format::f16:
      return to_float(reinterpret_cast<const F16*>(vector)[i]);
    case Format::bf16:
      return to_float(reinterpret_cast<const Bf16*>(vector)[i]);
    case Format::f8:
      return to_float(reinterpret_cast<const F8*>(vector)[i]);
    case Format::levels:
      return level_at(vector, i);
    default:  // default is Format::q8
      return static_cast<float>(reinterpret_cast<const signed char*>(vector)[i]);
  }
}

// `at` is the index of the token among those that the row sees.
__device__ float score_of_token(const AttentionParams& p, const SequenceRows& rows, int head, int row, int at,
                                float product) {
  if (p.distance_bias.numbers != nullptr)
    return product * p.scale + DistanceBias(p, rows, head, row).of(rows.token(row, head, at));
  return score_of(p, product, slope_of(p, head, row), at - rows.end(row) + 1);
}

// Returns the weighted sum of element d of the values, over the tokens [begin, end) of a piece.
__device__ float mix(const AttentionParams& p, const SequenceRows& rows, int head, int d, int begin, int end,
                     const int* tokens, const float* probabilities, const float* scales) {
  float mixed = 0;
  for (int t = begin; t < end; ++t)
    mixed = fmaf(probabilities[t], number(cached(p, rows, 1, head, tokens[t]), p.cache.format, d) * scales[t],
                 mixed);
  return mixed;
}

// Writes this thread's elements of a row's output.
template <class T, int kPerThread>
__device__ void store(const AttentionParams& p, const SequenceRows& rows, int row, int head,
                      const float (&values)[kPerThread], float inverse) {
  const int value_dim = p.cache.layout.value_dim(), column = rows.column(row, head, value_dim);
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int d = thread() + j * kThreads;
    if (d < value_dim)
      static_cast<T*>(p.out.data)[element_at(rows.query(row), p.out.stride, column + d)] =
          from_float<T>(values[j] * inverse);
  }
}

// Number of thread blocks that a multiprocessor must have room for. Without it, ptxas spills registers of the
// kernel for wide keys.
constexpr int blocks_for(int max_dim) { return max_dim > 256 ? 5 : 8; }

// kMaxDim: maximum width of a key.
template <class T, int kMaxDim>
__global__ void __launch_bounds__(kThreads, blocks_for(kMaxDim)) plain_kernel(AttentionParams p) {
  wait_for_kernels();
  constexpr int kPerThread = kMaxDim / kThreads;
  OCTAVO_SHARED(float, query, [kMaxDim]);
  OCTAVO_SHARED(float, probabilities, [kThreads]);
  OCTAVO_SHARED(float, value_scales, [kThreads]);
  OCTAVO_SHARED(int, tokens, [kThreads]);  // indices of the piece's tokens in the sequence
  OCTAVO_SHARED(float, partials, [kWarp]);
  const AttentionUnit unit = p.work.units[block_x()];
  const int head = static_cast<int>(block_y());
  const int dim = p.cache.layout.score_dim(), value_dim = p.cache.layout.value_dim();
  const int state_dim = p.cache.layout.head_dim;
#pragma unroll 1
  for (int row_of_unit = unit.row_begin; row_of_unit < unit.row_end; ++row_of_unit) {
    const OwnRow own(p, unit, row_of_unit);
    const SequenceRows rows(p, own.sequence);
    const int row = own.row, column = rows.column(row, head, dim);
    __syncthreads();
    for (int d = thread(); d < dim; d += kThreads)
      query[d] =
          to_float(static_cast<const T*>(p.q.data)[element_at(rows.query(row), p.q.stride, column + d)]);
    const Pieces seen = pieces_of(rows, row, row);
    const int first = unit.piece_begin > seen.begin ? unit.piece_begin : seen.begin;
    const int past = unit.piece_end < seen.end ? unit.piece_end : seen.end;
    float max = kMinusInfinity, sum = 0, values[kPerThread] = {};
#pragma unroll 1
    for (int piece = first; piece < past; ++piece) {
      __syncthreads();
      const int at = piece * kPieceTokens + thread();
      float score = kMinusInfinity;
      if (at >= rows.begin(row) && at < rows.end(row)) {
        const int token = rows.token(row, head, at);
        const std::byte* key = cached(p, rows, 0, head, token);
        float product = 0;
        for (int d = 0; d < dim; ++d) product = fmaf(query[d], number(key, p.cache.format, d), product);
        product *= cached_scale(p, rows, 0, head, token);
        score = score_of_token(p, rows, head, row, at, product);
        tokens[thread()] = token;
        value_scales[thread()] = cached_scale(p, rows, 1, head, token);
      }
      const float piece_max = block_max(score, partials);
      const float shift = piece_max == kMinusInfinity ? 0 : piece_max;
      probabilities[thread()] = exponential(score - shift);
      const float piece_sum = block_sum(probabilities[thread()], partials);
      const Weights weights = weigh(max, piece_max);
      max = weights.max;
      sum = merged(sum, piece_sum, weights);
      const int begin =
          rows.begin(row) > piece * kPieceTokens ? rows.begin(row) : piece * kPieceTokens;
      const int end =
          rows.end(row) < (piece + 1) * kPieceTokens ? rows.end(row) : (piece + 1) * kPieceTokens;
      float* state = own.merge < 0 ? nullptr : state_of(p, p.work.merges[own.merge], head, row, piece);
#pragma unroll
      for (int j = 0; j < kPerThread; ++j) {
        const int d = thread() + j * kThreads;
        if (d >= value_dim) break;
        const float mixed = mix(p, rows, head, d, begin - piece * kPieceTokens, end - piece * kPieceTokens,
                                tokens, probabilities, value_scales);
        values[j] = merged(values[j], mixed, weights);
        if (state != nullptr) state[d] = mixed;
      }
      if (state != nullptr && thread() == 0) {
        state[state_dim] = piece_max;
        state[state_dim + 1] = piece_sum;
      }
    }
    if (own.merge < 0) store<T>(p, rows, row, head, values, inverse_sum(p, head, row, max, sum));
  }
}

}  // namespace

void attention_plain(StreamHandle stream, const AttentionParams& p) {
  const dim3 grid(static_cast<unsigned>(p.work.narrow_units + p.work.wide_units),
                  static_cast<unsigned>(p.cache.layout.kv_heads));
  for_activation(p.q.format, [&](auto t) {
    if (p.cache.layout.head_dim <= 256) {
      launch(stream, grid, kThreads, 0, plain_kernel<decltype(t), 256>, p);
    } else {
      launch(stream, grid, kThreads, 0, plain_kernel<decltype(t), kMaxLatentKey>, p);
    }
  });
}

}  // namespace octavo::cuda
