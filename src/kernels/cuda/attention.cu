// Attention over pages on tensor cores. A block takes a tile of rows of one sequence and one key head (the
// queries that share a head are rows of one tile) through some of the pieces: scores of a whole piece in
// registers, its softmax, its values mixed. Decoding runs the same code on tiles of 16 rows, so that it has
// the same bits as a prompt.
#include "kernels/cuda/attention_tiles.h"

namespace octavo::cuda {
namespace {

constexpr int kTokenTiles = kPieceTokens / 8;
constexpr int kPad = 8;  // numbers between rows in shared memory, so that eight rows lie in different banks

// Dimensions of the values that a block mixes. Sums for 256 of them would not fit into registers: two blocks
// share such heads, and both work the scores out.
template <int kDim>
constexpr int kMixedDim = kDim > 128 ? 128 : kDim;

template <class T, int kDim, int kWarps>
struct Tile {
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kStride = kDim + kPad;
  static constexpr int kRows = kWarps * kTileRows;
  static constexpr int kMixed = kMixedDim<kDim>;
  static constexpr std::size_t kSharedBytes = (kRows + kPieceTokens) * kStride * sizeof(T) + 16;

  const AttentionParams& p;
  const AttentionUnit unit;
  const SequenceRows rows;
  const std::int64_t head;
  const int first_column;  // of the values
  T* const queries;        // shared: [kRows][kStride]
  T* const tokens;         // shared: [kPieceTokens][kStride], keys or values
  int* const spoilt;       // shared: some value of the piece is not finite

  // Of rows lane / 4 and lane / 4 + 8 of the warp.
  int row[2], begin[2], end[2];  // the tokens that a row sees
  float max[2] = {kMinusInfinity, kMinusInfinity}, sum[2] = {0, 0};
  float values[kMixed / 8][4];

  __device__ Tile(const AttentionParams& params, const AttentionUnit& of_unit)
      : p(params),
        unit(of_unit),
        rows(params, of_unit.sequence),
        head(block_y()),
        first_column(static_cast<int>(blockIdx.z) * kMixed),
        queries(reinterpret_cast<T*>(shared_memory())),
        tokens(queries + kRows * kStride),
        spoilt(reinterpret_cast<int*>(tokens + kPieceTokens * kStride)) {
    for (int i = 0; i < 2; ++i) {
      row[i] = unit.row_begin + warp() * kTileRows + lane() / 4 + 8 * i;
      const bool there = row[i] < unit.row_end;
      begin[i] = there ? static_cast<int>(rows.begin(row[i])) : 0;
      end[i] = there ? static_cast<int>(rows.end(row[i])) : 0;
    }
#pragma unroll
    for (int n = 0; n < kMixed / 8; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) values[n][e] = 0;
  }

  // Numbers beyond head_dim and rows beyond the unit's are zeros.
  __device__ void load_queries() {
    constexpr int kChunks = kDim / 8;
    const int dim = p.cache.layout.head_dim;
    for (int i = thread(); i < kRows * kChunks; i += kThreads) {
      const std::int64_t r = unit.row_begin + i / kChunks;
      const int d = i % kChunks * 8;
      uint4 numbers{0, 0, 0, 0};
      if (r < unit.row_end && d < dim)
        numbers = *reinterpret_cast<const uint4*>(
            static_cast<const T*>(p.q.data) +
            element_at(rows.query(r), p.q.stride, rows.column(r, head, dim) + d));
      *reinterpret_cast<uint4*>(queries + i / kChunks * kStride + d) = numbers;
    }
  }

  // Keys (0) or the block's part of the values (1) of a piece; tokens that no row of the unit sees are zeros
  // and not looked at.
  template <int kWhich>
  __device__ void load_tokens(int piece) {
    constexpr int kChunks = (kWhich == 0 ? kDim : kMixed) / 8;
    const int dim = p.cache.layout.head_dim, element = p.cache.layout.element_bytes;
    const int begin_column = kWhich == 0 ? 0 : first_column;
    const auto first = static_cast<int>(rows.begin(unit.row_begin)),
               past = static_cast<int>(rows.end(unit.row_end - 1));
    bool bad = false;
#pragma unroll 4
    for (int i = thread(); i < kPieceTokens * kChunks; i += kThreads) {
      const int token = piece * kPieceTokens + i / kChunks;
      const int d = i % kChunks * 8;
      uint4 numbers{0, 0, 0, 0};
      if (token >= first && token < past && begin_column + d < dim)
        numbers =
            load8<T>(cached(p, rows, kWhich, head, token) + (begin_column + d) * element, p.cache.format,
                     cached_scale(p, rows, kWhich, head, token));
      bad = bad || any_not_finite<T>(numbers.x) || any_not_finite<T>(numbers.y) ||
            any_not_finite<T>(numbers.z) || any_not_finite<T>(numbers.w);
      *reinterpret_cast<uint4*>(tokens + i / kChunks * kStride + d) = numbers;
    }
    if (kWhich == 1 && bad) *spoilt = 1;
  }

  // scores[n][..]: tokens 8n to 8n + 7 as in mma.h's D.
  __device__ void multiply_keys(float (&scores)[kTokenTiles][4]) {
#pragma unroll
    for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[n][e] = 0;
    const T* q = queries + (warp() * kTileRows + lane() % 16) * kStride + lane() / 16 * 8;
    const T* k = tokens + (lane() / 16 * 8 + lane() % 8) * kStride + lane() / 8 % 2 * 8;
#pragma unroll 1
    for (int d = 0; d < kDim; d += 16) {
      std::uint32_t a[4];
      load_matrices(a, q + d);
#pragma unroll
      for (int n = 0; n < kTokenTiles; n += 2) {
        std::uint32_t b[4];
        load_matrices(b, k + n * 8 * kStride + d);
        multiply_add<T>(scores[n], a, {b[0], b[1]});
        multiply_add<T>(scores[n + 1], a, {b[2], b[3]});
      }
    }
  }

  // Scores to probabilities, packed as mma.h's A: probabilities[k] are tokens 16k to 16k + 15. Gives each
  // row's maximum and sum.
  __device__ void soften(int piece, float (&scores)[kTokenTiles][4],
                         std::uint32_t (&probabilities)[kTokenTiles / 2][4], float (&piece_max)[2],
                         float (&piece_sum)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      float most = kMinusInfinity;
      const float slope = slope_of(p, head, row[i]);
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int token = piece * kPieceTokens + n * 8 + lane() % 4 * 2 + e;
          float& score = scores[n][2 * i + e];
          score = token >= begin[i] && token < end[i] ? score_of(p, score, slope, token - end[i] + 1)
                                                           : kMinusInfinity;
          most = fmaxf(most, score);
        }
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      float total = 0;
      const float shift = most == kMinusInfinity ? 0 : most;  // of a row that sees nothing here
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) total += scores[n][2 * i + e] = exponential(scores[n][2 * i + e] - shift);
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      piece_max[i] = most;
      piece_sum[i] = total;
    }
#pragma unroll
    for (int k = 0; k < kTokenTiles / 2; ++k)
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        probabilities[k][i] = pack<T>(scores[2 * k][2 * i], scores[2 * k][2 * i + 1]);
        probabilities[k][2 + i] = pack<T>(scores[2 * k + 1][2 * i], scores[2 * k + 1][2 * i + 1]);
      }
  }

  // 16 dimensions of the piece's mixed values. Zero times infinity would carry a value to rows that do not
  // see its token, so a piece with such values is mixed without them, and then those who see them get their
  // NaN.
  __device__ void mix(int piece, int d, bool bad, const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                      float (&mixed)[2][4]) {
#pragma unroll
    for (int e = 0; e < 4; ++e) mixed[0][e] = mixed[1][e] = 0;
    const T* v = tokens + (lane() % 16) * kStride + d + lane() / 16 * 8;
#pragma unroll
    for (int k = 0; k < kTokenTiles / 2; ++k) {
      std::uint32_t b[4];
      load_matrices_transposed(b, v + k * 16 * kStride);
      if (bad)
        for (std::uint32_t& numbers : b) numbers = finite<T>(numbers);
      multiply_add<T>(mixed[0], probabilities[k], {b[0], b[1]});
      multiply_add<T>(mixed[1], probabilities[k], {b[2], b[3]});
    }
    if (bad) spoil(piece, d, mixed);
  }
  __device__ void spoil(int piece, int d, float (&mixed)[2][4]) {
#pragma unroll 1
    for (int token = 0; token < kPieceTokens; ++token)
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int at = piece * kPieceTokens + token;
        const int i = e / 2 % 2;
        const T value = tokens[token * kStride + d + e / 4 * 8 + lane() % 4 * 2 + e % 2];
        if (at >= begin[i] && at < end[i] && not_finite<T>(value.bits)) mixed[e / 4][e % 4] = NAN;
      }
  }

  __device__ void run_piece(int piece) {
    if (thread() == 0) *spoilt = 0;
    load_tokens<0>(piece);
    __syncthreads();
    std::uint32_t probabilities[kTokenTiles / 2][4];
    float piece_max[2], piece_sum[2];
    {
      float scores[kTokenTiles][4];
      multiply_keys(scores);
      soften(piece, scores, probabilities, piece_max, piece_sum);
    }
    __syncthreads();
    load_tokens<1>(piece);
    __syncthreads();
    const bool bad = *spoilt != 0;
    if (unit.merge < 0) {
      mix_into_state(piece, bad, probabilities, piece_max, piece_sum);
    } else {
      mix_into_memory(piece, bad, probabilities, piece_max, piece_sum);
    }
    __syncthreads();
  }

  __device__ void mix_into_state(int piece, bool bad,
                                 const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                                 const float (&piece_max)[2], const float (&piece_sum)[2]) {
    const Weights weights[2] = {weigh(max[0], piece_max[0]), weigh(max[1], piece_max[1])};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      max[i] = weights[i].max;
      sum[i] = merged(sum[i], piece_sum[i], weights[i]);
    }
#pragma unroll
    for (int n = 0; n < kMixed / 8; n += 2) {
      float mixed[2][4];
      mix(piece, n * 8, bad, probabilities, mixed);
#pragma unroll
      for (int j = 0; j < 2; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) values[n + j][e] = merged(values[n + j][e], mixed[j][e], weights[e / 2]);
    }
  }

  __device__ void mix_into_memory(int piece, bool bad,
                                  const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                                  const float (&piece_max)[2], const float (&piece_sum)[2]) {
    const int dim = p.cache.layout.head_dim;
    float* state[2] = {nullptr, nullptr};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (row[i] >= unit.row_end) continue;
      state[i] = state_of(p, p.merges[unit.merge], head, row[i], piece);
      if (lane() % 4 != 0 || first_column > 0) continue;
      state[i][dim] = piece_max[i];
      state[i][dim + 1] = piece_sum[i];
    }
#pragma unroll 1
    for (int d = 0; d < kMixed; d += 16) {
      float mixed[2][4];
      mix(piece, d, bad, probabilities, mixed);
#pragma unroll
      for (int e = 0; e < 8; ++e) {
        const int column = first_column + d + e / 4 * 8 + lane() % 4 * 2 + e % 2;
        if (state[e / 2 % 2] != nullptr && column < dim) state[e / 2 % 2][column] = mixed[e / 4][e % 4];
      }
    }
  }

  __device__ void store() {
    const int dim = p.cache.layout.head_dim;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (row[i] >= unit.row_end) continue;
      T* out = static_cast<T*>(p.out.data) +
               element_at(rows.query(row[i]), p.out.stride, rows.column(row[i], head, dim));
      const float total = with_sink(p, head, row[i], max[i], sum[i]);
#pragma unroll
      for (int n = 0; n < kMixed / 8; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int column = first_column + n * 8 + lane() % 4 * 2 + e;
          if (column < dim) out[column] = from_float<T>(values[n][2 * i + e] / total);
        }
    }
  }
};

template <class T, int kDim, int kWarps>
__global__ void __launch_bounds__(kWarps* kWarp)
    attention_kernel(AttentionParams p, std::int64_t first_unit) {
  const AttentionUnit unit = p.units[first_unit + block_x()];
  if (unit.row_begin == unit.row_end) return;
  Tile<T, kDim, kWarps> tile(p, unit);
  tile.load_queries();
  const Pieces seen = pieces_of(tile.rows, tile.unit.row_begin, tile.unit.row_end - 1);
  const int begin = tile.unit.piece_begin > seen.begin ? tile.unit.piece_begin : static_cast<int>(seen.begin);
  const int end = tile.unit.piece_end < seen.end ? tile.unit.piece_end : static_cast<int>(seen.end);
#pragma unroll 1
  for (int piece = begin; piece < end; ++piece) tile.run_piece(piece);
  if (tile.unit.merge < 0) tile.store();
}

template <class T, int kDim, int kWarps>
void run_units(StreamHandle stream, const AttentionParams& p, std::int64_t first, std::int64_t count) {
  constexpr std::size_t kBytes = Tile<T, kDim, kWarps>::kSharedBytes;
  allow_shared(attention_kernel<T, kDim, kWarps>, kBytes);
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(p.cache.layout.kv_heads),
                  kDim / kMixedDim<kDim>);
  launch(stream, grid, kWarps * kWarp, kBytes, attention_kernel<T, kDim, kWarps>, p, first);
}

template <class T, int kDim>
void run_dim(StreamHandle stream, const AttentionParams& p) {
  run_units<T, kDim, kNarrowRows / kTileRows>(stream, p, 0, p.narrow_units);
  run_units<T, kDim, wide_rows(kDim, false) / kTileRows>(stream, p, p.narrow_units, p.wide_units);
}

// The states of a row's pieces, one after the other. A block does one row.
constexpr int kMergeThreads = 64;

template <class T>
__global__ void __launch_bounds__(kMergeThreads) merge_kernel(AttentionParams p) {
  const AttentionMerge m = p.merges[block_x()];
  const std::int64_t head = block_y() / p.merge_rows_max, row = m.row_begin + block_y() % p.merge_rows_max;
  if (row >= m.row_end) return;
  const SequenceRows rows(p, m.sequence);
  const int dim = p.cache.layout.head_dim, value_dim = p.cache.layout.value_dim();
  const Pieces seen = pieces_of(rows, row, row);
  T* out = static_cast<T*>(p.out.data) +
           element_at(rows.query(row), p.out.stride, rows.column(row, head, value_dim));
  for (int d = thread(); d < value_dim; d += kMergeThreads) {
    float max = kMinusInfinity, sum = 0, value = 0;
    for (std::int64_t piece = seen.begin; piece < seen.end; ++piece) {
      const float* state = state_of(p, m, head, row, piece);
      const Weights weights = weigh(max, state[dim]);
      max = weights.max;
      sum = merged(sum, state[dim + 1], weights);
      value = merged(value, state[d], weights);
    }
    out[d] = from_float<T>(value / with_sink(p, head, row, max, sum));
  }
}

}  // namespace

void attention(StreamHandle stream, const AttentionParams& p) {
  const int dim = p.cache.layout.head_dim;
  for_activation(p.q.format, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) == 2) {
      const bool latent = p.cache.layout.values_in_keys > 0;
      if ((p.cache.format != p.q.format && p.cache.layout.element_bytes != 1) || (latent && !takes_latent(p))) {
        attention_plain(stream, p);
      } else if (latent) {
        attention_latent(stream, p);
      } else if (dim <= 64) {
        run_dim<T, 64>(stream, p);
      } else if (dim <= 128) {
        run_dim<T, 128>(stream, p);
      } else {
        run_dim<T, 256>(stream, p);
      }
    } else {
      attention_plain(stream, p);
    }
    const auto rows = static_cast<unsigned>(p.cache.layout.kv_heads * p.merge_rows_max);
    launch(stream, {static_cast<unsigned>(p.merge_count), rows}, kMergeThreads, 0, merge_kernel<T>, p);
  });
}

}  // namespace octavo::cuda
