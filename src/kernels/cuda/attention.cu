// Attention over KV blocks on tensor cores. A thread block processes a tile of rows (of one sequence and one
// KV head) for some pieces of the keys. The queries that share a KV head are rows of one tile. A tile of a
// common prefix has rows of several sequences. For each piece, the thread block computes scores in registers,
// their softmax, and the weighted sum of values. Meanwhile it copies keys and values of the next piece.
//
// Narrow tiles, for decoding, have 16 rows, which four warps share. Each warp computes the scores of a
// quarter of a piece's tokens, and a quarter of the value columns; the warps exchange probabilities through
// shared memory. In a wide tile, each warp has 16 separate rows. Both kinds of tiles sum in the same order,
// so that decoding and prompts give the same bits. Hopper has another kernel for wide tiles, which also sums
// in this order (attention_wgmma.cu).
#include <algorithm>

#include "kernels/cuda/attention_pieces.h"
#include "kernels/cuda/key_widths.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {
namespace {

constexpr int kPad = 8;  // padding of rows in shared memory, so that eight rows are in different banks

template <class T, int kDim, int kWarps, bool kShared>
struct Tile {
  static constexpr int kThreads = kWarps * kWarp;
  static constexpr int kStride = kDim + kPad;
  static constexpr int kRows = (kShared ? 1 : kWarps) * kTileRows;
  static constexpr int kSharers = kShared ? kWarps : 1;
  static_assert(kSharers == 1 || kSharers == kParts);
  static constexpr int kMyTiles = kTokenTiles / kSharers;  // number of token tiles per warp
  // Number of value columns per thread block. A warp does not have enough registers for the sums of 256
  // columns. Therefore two thread blocks share such heads, and both compute the scores.
  static constexpr int kMixed = !kShared && kDim > 128 ? 128 : kDim;
  static constexpr int kMyMixed = kMixed / kSharers;  // number of value columns per warp
  static constexpr int kMixedAtOnce = kMyMixed < 32 ? kMyMixed : 32;
  // whether values have separate shared memory and are copied at the same time as the keys
  static constexpr bool kApart = kDim <= 128;

  struct Shared {
    union {
      T queries[kRows][kStride];
      uint4 probabilities[kShared ? kPieceTokens / 16 : 1]
                         [kWarp];  // shares the memory of `queries`, which are in registers by then
    };
    T keys[kPieceTokens][kStride];
    T values[kApart ? kPieceTokens : 1][kStride];
    const std::byte* tokens[2][kPieceTokens];  // addresses of the keys of two pieces, used alternately; null:
                                               // no row sees the token
    // maximum and sum of each row; [part of a piece] if warps share rows
    float max[kSharers][kTileRows], sum[kSharers][kTileRows];
  };

  const AttentionParams& p;
  const AttentionUnit unit;
  const SequenceRows rows;
  const int first_token, past_token;  // range of tokens that any row of the unit sees
  const int head, first_column;       // head and first column of the block's values
  Shared& shared;
  std::uint32_t queries[kShared ? kDim / 16 : 1][4];

  const LaneRows mine;  // rows of this warp
  LaneState<kMyMixed / 8> state;

  __device__ Tile(const AttentionParams& params, const AttentionUnit& of_unit)
      : p(params),
        unit(of_unit),
        rows(params, of_unit.sequence, kShared && of_unit.shared ? params.work.shared : nullptr),
        first_token(rows.begin(of_unit.row_begin)),
        past_token(rows.end(of_unit.row_end - 1)),
        head(static_cast<int>(block_y())),
        first_column(static_cast<int>(blockIdx.z) * kMixed),
        shared(*reinterpret_cast<Shared*>(shared_memory())),
        mine(rows, unit, first_row()) {}

  // Indices of the first elements that this warp processes: row of the thread block, tile of 8 tokens of a
  // piece, and column of the thread block.
  __device__ static int first_row() { return kShared ? 0 : warp() * kTileRows; }
  __device__ static int first_tile() { return kShared ? warp() * kMyTiles : 0; }
  __device__ static int my_column() { return kShared ? warp() * kMyMixed : 0; }

  // Returns the shared memory of keys (0) or values (1).
  template <int kWhich>
  __device__ T (&token_rows())[kPieceTokens][kStride] {
    if constexpr (kWhich == 1 && kApart) {
      return shared.values;
    } else {
      return shared.keys;
    }
  }

  // Loads the queries. Elements after head_dim and rows after the last row of the unit are zeros.
  __device__ void load_queries() {
    constexpr int kChunks = kDim / 8;
    const int dim = p.cache.layout.head_dim;
    for (int i = thread(); i < kRows * kChunks; i += kThreads) {
      const int r = unit.row_begin + i / kChunks;
      const int d = i % kChunks * 8;
      uint4 numbers{0, 0, 0, 0};
      if (r < unit.row_end && d < dim)
        numbers = *reinterpret_cast<const uint4*>(
            static_cast<const T*>(p.q.data) +
            element_at(rows.query(r), p.q.stride, rows.column(r, head, dim) + d));
      T* const to = shared.queries[i / kChunks] + d;
      *reinterpret_cast<uint4*>(to) = numbers;
    }
    if constexpr (kShared) {
      __syncthreads();
#pragma unroll
      for (int d = 0; d < kDim / 16; ++d)
        load_matrices(queries[d], &shared.queries[lane() % 16][d * 16 + lane() / 16 * 8]);
    }
  }

  // Computes the addresses of a piece's tokens. All threads see the addresses after the next barrier.
  __device__ void locate(int piece) {
    for (int i = thread(); i < kPieceTokens; i += kThreads) {
      const int token = piece * kPieceTokens + i;
      shared.tokens[piece % 2][i] = token >= first_token && token < past_token ? cached(p, rows, 0, head, token) : nullptr;
    }
  }

  // Starts copies of a piece's keys (0), or of this thread block's columns of its values (1). Tokens that no
  // row of the unit sees are not read; their copies are zeros.
  template <int kWhich>
  __device__ void begin_tokens(int piece, int past_piece) {
    if (piece < past_piece) {
      constexpr int kChunks = (kWhich == 0 ? kDim : kMixed) / 8;
      const KvLayout& layout = p.cache.layout;
      const int column = (kWhich == 0 ? 0 : first_column) + thread() % kChunks * 8;
      const bool in_row = column < layout.head_dim;
      const std::int64_t offset =
          layout.vector(0, kWhich, 0, 0) - layout.vector(0, 0, 0, 0) + column * layout.bits / 8;
      static_assert(kThreads % kChunks == 0);
      if (layout.bits <= 8) {
        load_tokens<kWhich, kChunks>(piece, offset, in_row);
      } else {
#pragma unroll 4
        for (int i = thread() / kChunks; i < kPieceTokens; i += kThreads / kChunks) {
          const std::byte* token = shared.tokens[piece % 2][i];
          const bool valid = in_row && token != nullptr;
          copy_async(token_rows<kWhich>()[i] + thread() % kChunks * 8, valid ? token + offset : p.cache.data,
                     valid);
        }
      }
    }
    commit_copies();
  }
  // Copies numbers of 8 or 4 bits, which pass through registers. Each thread reads kAtOnce chunks before it
  // writes the first one, so that the reads overlap.
  template <int kWhich, int kChunks>
  __device__ void load_tokens(int piece, std::int64_t offset, bool in_row) {
    constexpr int kAtOnce = 8, kRowsApart = kThreads / kChunks;
    static_assert(kPieceTokens % (kAtOnce * kRowsApart) == 0);
#pragma unroll 1
    for (int first = thread() / kChunks; first < kPieceTokens; first += kAtOnce * kRowsApart) {
      uint2 numbers[kAtOnce];
      float scales[kAtOnce];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = first + j * kRowsApart;
        const std::byte* token = shared.tokens[piece % 2][i];
        const bool valid = in_row && token != nullptr;
        numbers[j] = valid ? load_eight(token + offset) : uint2{0, 0};
        scales[j] = valid ? cached_scale(p, rows, kWhich, head, piece * kPieceTokens + i) : 0;
      }
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
        T* const to = token_rows<kWhich>()[first + j * kRowsApart] + thread() % kChunks * 8;
        *reinterpret_cast<uint4*>(to) = unpack8<T>(numbers[j], p.cache.format, scales[j]);
      }
    }
  }

  // Loads eight numbers of 8 or 4 bits.
  __device__ uint2 load_eight(const std::byte* from) const {
    if (p.cache.layout.bits == 4) return {*reinterpret_cast<const std::uint32_t*>(from), 0};
    return *reinterpret_cast<const uint2*>(from);
  }

  // Computes scores[n][..] for the warp's tokens 8n to 8n + 7, in the layout of D in mma.h.
  __device__ void multiply_keys(float (&scores)[kMyTiles][4]) {
#pragma unroll
    for (int n = 0; n < kMyTiles; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) scores[n][e] = 0;
    const T* q = &shared.queries[first_row() + lane() % 16][lane() / 16 * 8];
    const T* k = &shared.keys[first_tile() * 8 + lane() / 16 * 8 + lane() % 8][lane() / 8 % 2 * 8];
#pragma unroll(kShared ? kDim / 16 : 2)
    for (int d = 0; d < kDim; d += 16) {
      std::uint32_t a[4];
      if constexpr (kShared) {
#pragma unroll
        for (int i = 0; i < 4; ++i) a[i] = queries[d / 16][i];
      } else {
        load_matrices(a, q + d);
      }
#pragma unroll
      for (int n = 0; n < kMyTiles; n += 2) {
        std::uint32_t b[4];
        load_matrices(b, k + n * 8 * kStride + d);
        multiply_add<T>(scores[n], a, {b[0], b[1]});
        multiply_add<T>(scores[n + 1], a, {b[2], b[3]});
      }
    }
  }

  // Converts scores to probabilities in the layout of A in mma.h: probabilities[k] are the tokens 16k to 16k
  // + 15 of the piece. Computes the maximum and the sum of each row. Starts the copy of the next keys as soon
  // as all warps have finished with the current ones.
  __device__ void soften(int piece, int past, float (&scores)[kMyTiles][4],
                         std::uint32_t (&probabilities)[kTokenTiles / 2][4], float (&piece_max)[2],
                         float (&piece_sum)[2]) {
    const float scale = make_scores(p, rows, head, mine, piece, first_tile(), scores),
                scale_of_2 = scale * kLog2E;
    find_most(scores, piece_max);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (kShared && lane() % 4 == 0) shared.max[warp()][lane() / 4 + 8 * i] = piece_max[i];
    __syncthreads();
    // overwrites the current keys
    kApart ? begin_tokens<0>(piece + 1, past) : begin_tokens<1>(piece, past);
    if constexpr (kShared) {
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int part = 0; part < kParts; ++part)
          piece_max[i] = fmaxf(piece_max[i], shared.max[part][lane() / 4 + 8 * i]);
    }
    make_probabilities(scores, piece_max, scale_of_2, piece_sum);
#pragma unroll
    for (int i = 0; i < 2; ++i)
      if (kShared && lane() % 4 == 0) shared.sum[warp()][lane() / 4 + 8 * i] = piece_sum[i];
    pack_probabilities<T>(scores, probabilities);
#pragma unroll
    for (int i = 0; i < 2; ++i) piece_max[i] *= scale;
    if constexpr (kShared) {
#pragma unroll
      for (int k = 0; k < kMyTiles / 2; ++k)
        shared.probabilities[first_tile() / 2 + k][lane()] = {probabilities[k][0], probabilities[k][1],
                                                              probabilities[k][2], probabilities[k][3]};
      __syncthreads();
#pragma unroll
      for (int k = 0; k < kTokenTiles / 2; ++k) {
        const uint4 all = shared.probabilities[k][lane()];
        probabilities[k][0] = all.x;
        probabilities[k][1] = all.y;
        probabilities[k][2] = all.z;
        probabilities[k][3] = all.w;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        piece_sum[i] = 0;
#pragma unroll
        for (int part = 0; part < kParts; ++part) piece_sum[i] += shared.sum[part][lane() / 4 + 8 * i];
      }
    }
  }

  // Computes kMixedAtOnce columns of the piece's weighted values, from column d of the thread block on. The
  // sums are independent, so that none waits for another.
  __device__ void mix(int piece, int d, const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                      float (&mixed)[kMixedAtOnce / 8][4]) {
    const auto at = [&](int token, int column) { return &token_rows<1>()[token][d + column]; };
    mix_values<T>(probabilities, at, false, mixed);
    mend_values<T>(mine, piece, probabilities, at, mixed);
  }

  __device__ void run_pieces(int first, int past) {
    locate(first);
    __syncthreads();
    begin_tokens<0>(first, past);
    if (kApart) begin_tokens<1>(first, past);
#pragma unroll 1
    for (int piece = first; piece < past; ++piece) {
      if (piece + 1 < past) locate(piece + 1);
      wait_copies<kApart ? 1 : 0>();  // the keys have arrived
      __syncthreads();
      std::uint32_t probabilities[kTokenTiles / 2][4];
      float piece_max[2], piece_sum[2];
      {
        float scores[kMyTiles][4];
        multiply_keys(scores);
        soften(piece, past, scores, probabilities, piece_max, piece_sum);
      }
      wait_copies<kApart ? 1 : 0>();  // the values have arrived
      __syncthreads();
      if (unit.merge < 0) {
        mix_into_state(piece, probabilities, piece_max, piece_sum);
      } else {
        mix_into_memory(piece, probabilities, piece_max, piece_sum);
      }
      __syncthreads();
      kApart ? begin_tokens<1>(piece + 1, past) : begin_tokens<0>(piece + 1, past);
    }
    wait_copies<0>();
  }

  __device__ void mix_into_state(int piece, const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                                 const float (&piece_max)[2], const float (&piece_sum)[2]) {
    Weights weights[2];
    state.merge_sums(piece_max, piece_sum, weights);
#pragma unroll
    for (int n = 0; n < kMyMixed / 8; n += kMixedAtOnce / 8) {
      float mixed[kMixedAtOnce / 8][4];
      mix(piece, my_column() + n * 8, probabilities, mixed);
      state.merge_values(n, mixed, weights);
    }
  }

  __device__ void mix_into_memory(int piece, const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                                  const float (&piece_max)[2], const float (&piece_sum)[2]) {
    const int dim = p.cache.layout.head_dim;
    const LaneStates states(p, unit, rows, mine, head, piece);
    if (first_column + my_column() == 0) states.store_sums(dim, piece_max, piece_sum);
#pragma unroll 1
    for (int d = my_column(); d < my_column() + kMyMixed; d += kMixedAtOnce) {
      float mixed[kMixedAtOnce / 8][4];
      mix(piece, d, probabilities, mixed);
      states.store_values(dim, first_column + d, mixed);
    }
  }

  __device__ void store() {
    state.template store<T>(p, rows, mine, unit.row_end, head, first_column + my_column());
  }
};

template <class T, int kDim, int kWarps, bool kShared>
__global__ void __launch_bounds__(kWarps* kWarp, kDim > 128 ? 1 : kShared ? 3 : 2)
    attention_kernel(AttentionParams p, std::int64_t first_unit) {
  wait_for_kernels();
  const AttentionUnit unit = p.work.units[first_unit + block_x()];
  if (unit.row_begin == unit.row_end) return;
  Tile<T, kDim, kWarps, kShared> tile(p, unit);
  tile.load_queries();
  const Pieces seen = pieces_of(tile.rows, unit.row_begin, unit.row_end - 1);
  const int begin = unit.piece_begin > seen.begin ? unit.piece_begin : seen.begin;
  const int end = unit.piece_end < seen.end ? unit.piece_end : seen.end;
  tile.run_pieces(begin, end);
  if (tile.unit.merge < 0) tile.store();
}

template <class T, int kDim, int kWarps, bool kShared>
void run_units(StreamHandle stream, const AttentionParams& p, std::int64_t first, std::int64_t count) {
  using Units = Tile<T, kDim, kWarps, kShared>;
  constexpr std::size_t kBytes = sizeof(typename Units::Shared);
  const auto kernel = attention_kernel<T, kDim, kWarps, kShared>;
  allow_shared(kernel, kBytes);
  const dim3 grid(static_cast<unsigned>(count), static_cast<unsigned>(p.cache.layout.kv_heads),
                  kDim / Units::kMixed);
  launch(stream, grid, kWarps * kWarp, kBytes, kernel, p, first);
}

template <class T, int kDim>
void run_dim(StreamHandle stream, const AttentionParams& p) {
  run_units<T, kDim, kParts, true>(stream, p, 0, p.work.narrow_units);
  if (!p.work.wide_by_wgmma)
    run_units<T, kDim, wide_rows(kDim, false) / kTileRows, false>(stream, p, p.work.narrow_units,
                                                                  p.work.wide_units);
}

// Merges the states of a row's pieces in order, in one thread block.
constexpr int kMergeThreads = 128;
// Number of thread blocks that fill a device. More would take time in captured steps, whose last merges may
// be empty.
constexpr std::int64_t kMergeBlocks = 4096;

template <class T>
__device__ void merge_row(const AttentionParams& p, const AttentionMerge& m, int head, int row) {
  const SequenceRows rows(p, m.sequence);
  const int dim = p.cache.layout.head_dim, value_dim = p.cache.layout.value_dim();
  const Pieces seen = pieces_of(rows, row, row);
  T* out = static_cast<T*>(p.out.data) +
           element_at(rows.query(row), p.out.stride, rows.column(row, head, value_dim));
  for (int d = thread(); d < value_dim; d += kMergeThreads) {
    float max = kMinusInfinity, sum = 0, value = 0;
#pragma unroll 8  // unrolled, so that the states of several pieces are read ahead
    for (int piece = seen.begin; piece < seen.end; ++piece) {
      const float* state = state_of(p, m, head, row, piece);
      const Weights weights = weigh(max, state[dim]);
      max = weights.max;
      sum = merged(sum, state[dim + 1], weights);
      value = merged(value, state[d], weights);
    }
    out[d] = from_float<T>(value * inverse_sum(p, head, row, max, sum));
  }
}

template <class T>
__global__ void __launch_bounds__(kMergeThreads) merge_kernel(AttentionParams p, std::int64_t stride) {
  wait_for_kernels();
  const int head = static_cast<int>(block_y() / p.work.merge_rows_max);
  const int row = static_cast<int>(block_y() % p.work.merge_rows_max);
#pragma unroll 1
  for (std::int64_t i = block_x(); i < p.work.merge_count; i += stride) {
    const AttentionMerge m = p.work.merges[i];
    if (m.row_begin + row < m.row_end) merge_row<T>(p, m, head, m.row_begin + row);
  }
}

template <class T>
void merge(StreamHandle stream, const AttentionParams& p) {
  const std::int64_t rows = p.cache.layout.kv_heads * p.work.merge_rows_max;
  if (p.work.merge_count == 0) return;
  const std::int64_t merges = std::min(p.work.merge_count, (kMergeBlocks + rows - 1) / rows);
  launch(stream, {static_cast<unsigned>(merges), static_cast<unsigned>(rows)}, kMergeThreads, 0,
         merge_kernel<T>, p, merges);
}

}  // namespace

void attention(StreamHandle stream, const AttentionParams& p) {
  const int dim = p.cache.layout.head_dim;
  for_activation(p.q.format, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) == 2) {
      const bool latent = p.cache.layout.values_in_keys > 0;
      if ((p.cache.format != p.q.format && p.cache.layout.bits > 8) ||
          (latent ? !takes_latent(p) || p.distance_bias.numbers != nullptr
                  : dim > kMaxTiledKey || p.chosen != nullptr)) {
        attention_plain(stream, p);
      } else if (latent) {
        attention_latent(stream, p);
      } else {
        if (p.work.wide_by_wgmma) attention_wgmma(stream, p);
        if (dim <= 64) {
          run_dim<T, 64>(stream, p);
        } else if (dim <= 128) {
          run_dim<T, 128>(stream, p);
        } else {
          run_dim<T, 256>(stream, p);
        }
      }
    } else {
      attention_plain(stream, p);
    }
    merge<T>(stream, p);
  });
}

}  // namespace octavo::cuda
