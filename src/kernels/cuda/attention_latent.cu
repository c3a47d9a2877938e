// Latent attention on tensor cores. Keys may have any width, their first elements are also the values, and
// all query heads share one KV head. A thread block processes a tile of rows (the heads of one query) piece
// by piece, as in attention.cu. Keys do not fit into shared memory. Therefore columns of queries and keys
// pass through a ring of buffers, kTileColumns columns at a time. Columns that are also values pass a second
// time, for the weighted sum.
//
// Four warps share the rows of a tile. Each warp computes the scores of a quarter of a piece's tokens, and a
// quarter of every kTileColumns value columns. The warps exchange probabilities through shared memory. The
// assignment of tokens to warps does not depend on the tile's rows, so that decoding and prompts give the
// same bits.
#include "kernels/cuda/attention_tiles.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {
namespace {

constexpr int kSharers = 4;                             // number of warps that share rows
constexpr int kSharedTokens = kPieceTokens / kSharers;  // number of tokens per warp
constexpr int kTokenTiles = kSharedTokens / 8;
constexpr int kSlots = 3;    // number of slots in the ring
constexpr int kLocated = 3;  // number of pieces whose token addresses are computed at a time
constexpr int kValueChunks = kMaxTiledLatent / kTileColumns;

// kGroups: number of groups of four warps; each group has 16 rows. kBytes: the cache has 8-bit numbers.
template <class T, bool kBytes, int kGroups>
struct LatentTile {
  static constexpr int kThreads = kGroups * kSharers * kWarp;
  static constexpr int kRows = kGroups * kTileRows;
  static constexpr int kTokenBytes = kPieceTokens * kTileRowBytes;
  static constexpr int kSlotBytes = kTokenBytes + kRows * kTileRowBytes;
  static constexpr int kProbabilityBytes = kPieceTokens / kTileColumns * kRows * kTileRowBytes;
  static constexpr int kCopiedRows =
      kThreads / 8;  // number of rows copied at a time: eight threads copy the 16-byte chunks of a row

  struct Shared {
    unsigned char slots[kSlots][kSlotBytes];  // contents of a slot: tokens, then queries
    unsigned char probabilities[kProbabilityBytes];
    // address of each token's key; null: no row sees the token, and zeros replace its key
    const std::byte* keys[kLocated][kPieceTokens];
    float scales[kLocated][kPieceTokens];
    int begin[kRows], end[kRows];                      // range of tokens that each row sees
    float max[kSharers][kRows], sum[kSharers][kRows];  // maximum and sum of each row in each part of a piece
    bool bad[kGroups][kSharers];  // whether a key of the group has a number that is not finite
  };

  const AttentionParams& p;
  const AttentionUnit unit;
  Shared& shared;
  const int group, part;  // group and part of this thread's warp
  const int chunks, value_chunks;
  const T* queries[kRows / kCopiedRows];  // rows of queries that this thread copies, or null
  int first_piece, past_piece;
  struct {
    int piece, chunk = 0, slot = 0;
  } coming;               // next chunk to copy
  int slot = kSlots - 1;  // slot of the chunk before the next one

  // State of the rows lane / 4 and lane / 4 + 8 of the group.
  float max[2] = {kMinusInfinity, kMinusInfinity}, sum[2] = {0, 0};
  float values[2 * kValueChunks][4];
  float of_state[2], of_piece[2];         // weights of the state and of the piece in a merge
  float* states[2] = {nullptr, nullptr};  // destinations for states; null: states are not stored
  std::uint32_t probabilities[kPieceTokens / 16][4];
  bool bad = false;

  __device__ LatentTile(const AttentionParams& params, const AttentionUnit& of_unit)
      : p(params),
        unit(of_unit),
        shared(*reinterpret_cast<Shared*>(shared_memory())),
        group(warp() / kSharers),
        part(warp() % kSharers),
        chunks((params.cache.layout.score_dim() + kTileColumns - 1) / kTileColumns),
        value_chunks((params.cache.layout.value_dim() + kTileColumns - 1) / kTileColumns) {
    const SequenceRows rows(p, unit.sequence);
    const Pieces seen = pieces_of(rows, unit.row_begin, unit.row_end - 1);
    first_piece = unit.piece_begin > seen.begin ? unit.piece_begin : static_cast<int>(seen.begin);
    past_piece = unit.piece_end < seen.end ? unit.piece_end : static_cast<int>(seen.end);
    coming.piece = first_piece;
    for (int r = thread(); r < kRows; r += kThreads) {
      const bool valid = unit.row_begin + r < unit.row_end;
      shared.begin[r] = valid ? static_cast<int>(rows.begin(unit.row_begin + r)) : 0;
      shared.end[r] = valid ? static_cast<int>(rows.end(unit.row_begin + r)) : 0;
    }
#pragma unroll
    for (int i = 0; i < kRows / kCopiedRows; ++i) {
      const int row = unit.row_begin + thread() / 8 + i * kCopiedRows;
      queries[i] = row < unit.row_end ? static_cast<const T*>(p.q.data) +
                                            element_at(rows.query(row), p.q.stride,
                                                       rows.column(row, 0, p.cache.layout.score_dim()))
                                      : nullptr;
    }
#pragma unroll
    for (int n = 0; n < 2 * kValueChunks; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e) values[n][e] = 0;
  }

  // Returns the tile row that belongs to sum i of this lane.
  __device__ int row_of(int i) const { return group * kTileRows + lane() / 4 + 8 * i; }

  // Computes the addresses of a piece's keys. All threads see the addresses after the next barrier.
  __device__ void locate(int piece) {
    const SequenceRows rows(p, unit.sequence);
    const int first = rows.begin(unit.row_begin), past = rows.end(unit.row_end - 1);
    for (int i = thread(); i < kPieceTokens; i += kThreads) {
      const int at = piece * kPieceTokens + i;
      const bool valid = piece < past_piece && at >= first && at < past;
      const int token = valid ? rows.token(unit.row_begin, 0, at) : 0;
      shared.keys[piece % kLocated][i] = valid ? cached(p, rows, 0, 0, token) : nullptr;
      shared.scales[piece % kLocated][i] = valid ? cached_scale(p, rows, 0, 0, token) : 0;
    }
  }

  // Starts the copy of the next chunk of queries and keys, or of values.
  __device__ void begin_chunk() {
    if (coming.piece < past_piece) {
      const bool keys = coming.chunk < chunks;
      const int column = (keys ? coming.chunk : coming.chunk - chunks) * kTileColumns + thread() % 8 * 8;
      const bool valid = column < p.cache.layout.score_dim();
      unsigned char* to = shared.slots[coming.slot];
      const std::byte* const* from = shared.keys[coming.piece % kLocated];
#pragma unroll 1  // Not unrolled, because the loop is inlined ten times.
      for (int i = thread() / 8; i < kPieceTokens; i += kCopiedRows) {
        const bool real = valid && from[i] != nullptr;
        const std::byte* numbers = real ? from[i] + column * (kBytes ? 1 : 2) : p.cache.data;
        unsigned char* target = to + swizzled(i, thread() % 8);
        if constexpr (kBytes) {
          *reinterpret_cast<uint4*>(target) =
              real ? unpack8<T>(*reinterpret_cast<const uint2*>(numbers), p.cache.format,
                                shared.scales[coming.piece % kLocated][i])
                   : uint4{0, 0, 0, 0};
        } else {
          copy_async(target, numbers, real);
        }
      }
#pragma unroll
      for (int i = 0; i < kRows / kCopiedRows; ++i) {
        if (!keys) break;
        const bool real = valid && queries[i] != nullptr;
        copy_async(to + kTokenBytes + swizzled(thread() / 8 + i * kCopiedRows, thread() % 8),
                   real ? queries[i] + column : p.q.data, real);
      }
      if (++coming.chunk == chunks + value_chunks) {
        coming.chunk = 0;
        ++coming.piece;
      }
      coming.slot = (coming.slot + 1) % kSlots;
    }
    commit_copies();
  }

  __device__ const unsigned char* next_chunk() {
    wait_copies<kSlots - 2>();
    __syncthreads();  // Waits for the chunk, and until all threads have used the previous chunk.
    begin_chunk();
    slot = (slot + 1) % kSlots;
    return shared.slots[slot];
  }

  // Computes scores[n][..] for the warp's tokens 8n to 8n + 7, in the layout of D in mma.h.
  __device__ void multiply_keys(const unsigned char* chunk, float (&scores)[kTokenTiles][4]) {
    const unsigned char* q = chunk + kTokenBytes;
#pragma unroll
    for (int d = 0; d < kTileColumns / 8; d += 2) {
      std::uint32_t a[4];
      load_matrices(a, q + swizzled(group * kTileRows + lane() % 16, d + lane() / 16));
#pragma unroll
      for (int n = 0; n < kTokenTiles; n += 2) {
        std::uint32_t b[4];
        load_matrices(b, chunk + swizzled(part * kSharedTokens + n * 8 + lane() / 16 * 8 + lane() % 8,
                                          d + lane() / 8 % 2));
        multiply_add<T>(scores[n], a, {b[0], b[1]});
        multiply_add<T>(scores[n + 1], a, {b[2], b[3]});
      }
    }
  }

  // Converts the warp's scores to probabilities, exchanges them with the other warps of the rows, and merges
  // the piece into the state's maximum and sum. If a key has a number that is not finite, its scores are not
  // finite either, and rows that see the key get NaN. The weighted sum excludes such values, because 0 times
  // such a value would be NaN in the other rows.
  __device__ void soften(int piece, float (&scores)[kTokenTiles][4]) {
    bool spoilt = false;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(i);
      const int begin = shared.begin[row], end = shared.end[row];
      const float slope = slope_of(p, 0, unit.row_begin + row);
      float most = kMinusInfinity;
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int at = piece * kPieceTokens + part * kSharedTokens + n * 8 + lane() % 4 * 2 + e;
          float& score = scores[n][2 * i + e];
          const bool finite = fabsf(score) < INFINITY;
          spoilt = spoilt || !finite;
          if (at < begin || at >= end) {
            score = kMinusInfinity;
          } else {
            score = finite ? score_of(p, score, slope, at - end + 1) : NAN;
          }
          most = fmaxf(most, score);
        }
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 1));
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, 2));
      if (lane() % 4 == 0) shared.max[part][row] = most;
    }
    spoilt = __ballot_sync(kAllLanes, spoilt) != 0;
    if (lane() == 0) shared.bad[group][part] = spoilt;
    __syncthreads();
    bad = false;
#pragma unroll
    for (int w = 0; w < kSharers; ++w) bad = bad || shared.bad[group][w];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(i);
      const float most = piece_max(row);
      const float shift = most == kMinusInfinity ? 0 : most;  // 0 if the row sees no token of the piece
      float total = 0;
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n) {
        float(&pair)[4] = scores[n];
#pragma unroll
        for (int e = 0; e < 2; ++e) total += pair[2 * i + e] = exponential(pair[2 * i + e] - shift);
        *reinterpret_cast<std::uint32_t*>(probabilities_of(row, part * kTokenTiles + n) + lane() % 4 * 4) =
            pack<T>(pair[2 * i], pair[2 * i + 1]);
      }
      total += __shfl_xor_sync(kAllLanes, total, 1);
      total += __shfl_xor_sync(kAllLanes, total, 2);
      if (lane() % 4 == 0) shared.sum[part][row] = total;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < kPieceTokens / 16; ++k)
      load_matrices(probabilities[k], probabilities_of(group * kTileRows + lane() % 16, 2 * k + lane() / 16));
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = row_of(i);
      const Weights w = weigh(max[i], piece_max(row));
      of_state[i] = w.state;
      of_piece[i] = w.piece;
      max[i] = w.max;
      sum[i] = merged(sum[i], piece_sum(row), w);
      if (unit.merge < 0 || unit.row_begin + row >= unit.row_end) continue;
      states[i] = state_of(p, p.work.merges[unit.merge], 0, unit.row_begin + row, piece);
      if (part != 0 || lane() % 4 != 0) continue;
      states[i][p.cache.layout.head_dim] = piece_max(row);
      states[i][p.cache.layout.head_dim + 1] = piece_sum(row);
    }
  }
  __device__ float piece_max(int row) const {
    float most = shared.max[0][row];
#pragma unroll
    for (int w = 1; w < kSharers; ++w) most = fmaxf(most, shared.max[w][row]);
    return most;
  }
  __device__ float piece_sum(int row) const {
    float total = shared.sum[0][row];
#pragma unroll
    for (int w = 1; w < kSharers; ++w) total += shared.sum[w][row];
    return total;
  }
  // Returns the address of the probabilities of eight tokens.
  __device__ unsigned char* probabilities_of(int row, int eight) const {
    return shared.probabilities + eight / 8 * kRows * kTileRowBytes + swizzled(row, eight % 8);
  }

  // Computes the weighted sum for 16 columns of a chunk of values, from column c on.
  __device__ void mix(int c, const unsigned char* chunk) {
    float mixed[2][4];
#pragma unroll
    for (int e = 0; e < 4; ++e) mixed[0][e] = mixed[1][e] = 0;
#pragma unroll
    for (int k = 0; k < kPieceTokens / 16; ++k) {
      std::uint32_t b[4];
      load_matrices_transposed(b, chunk + swizzled(k * 16 + lane() % 16, part * 2 + lane() / 16));
      if (bad)
        for (std::uint32_t& numbers : b) numbers = finite<T>(numbers);
      multiply_add<T>(mixed[0], probabilities[k], {b[0], b[1]});
      multiply_add<T>(mixed[1], probabilities[k], {b[2], b[3]});
    }
    if (unit.merge >= 0) return to_memory(c, mixed);
#pragma unroll
    for (int n = 0; n < 2; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        values[2 * c + n][e] =
            merged(values[2 * c + n][e], mixed[n][e], {0, of_state[e / 2], of_piece[e / 2]});
  }
  __device__ int column_of(int c, int n, int e) const {
    return c * kTileColumns + part * 16 + n * 8 + lane() % 4 * 2 + e;
  }
  __device__ void to_memory(int c, const float (&mixed)[2][4]) {
#pragma unroll
    for (int i = 0; i < 2; ++i)
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int column = column_of(c, e / 2, e % 2);
        if (states[i] != nullptr && column < p.cache.layout.value_dim())
          states[i][column] = mixed[e / 2][2 * i + e % 2];
      }
  }

  __device__ void run() {
    for (int piece = first_piece; piece < first_piece + kLocated - 1; ++piece) locate(piece);
    __syncthreads();
    for (int i = 0; i < kSlots - 1; ++i) begin_chunk();
#pragma unroll 1
    for (int piece = first_piece; piece < past_piece; ++piece) {
      float scores[kTokenTiles][4];
#pragma unroll
      for (int n = 0; n < kTokenTiles; ++n)
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[n][e] = 0;
#pragma unroll 1
      for (int c = 0; c < chunks; ++c) {
        const unsigned char* chunk = next_chunk();
        if (c == 0) locate(piece + kLocated - 1);
        multiply_keys(chunk, scores);
      }
      soften(piece, scores);
#pragma unroll
      for (int c = 0; c < kValueChunks; ++c)
        if (c < value_chunks) mix(c, next_chunk());
    }
    wait_copies<0>();
    if (unit.merge < 0) store();
  }

  __device__ void store() {
    const SequenceRows rows(p, unit.sequence);
    const int dim = p.cache.layout.value_dim();
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int row = unit.row_begin + row_of(i);
      if (row >= unit.row_end) continue;
      T* out =
          static_cast<T*>(p.out.data) + element_at(rows.query(row), p.out.stride, rows.column(row, 0, dim));
      const float inverse = inverse_sum(p, 0, row, max[i], sum[i]);
#pragma unroll
      for (int n = 0; n < 2 * kValueChunks; ++n)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          if (const int column = column_of(n / 2, n % 2, e); column < dim)
            out[column] = from_float<T>(values[n][2 * i + e] * inverse);
    }
  }
};

template <class T, bool kBytes, int kGroups>
__global__ void __launch_bounds__(LatentTile<T, kBytes, kGroups>::kThreads)
    latent_kernel(AttentionParams p, std::int64_t first_unit) {
  wait_for_kernels();
  const AttentionUnit unit = p.work.units[first_unit + block_x()];
  if (unit.row_begin == unit.row_end) return;
  LatentTile<T, kBytes, kGroups> tile(p, unit);
  tile.run();
}

template <class T, bool kBytes, int kGroups>
void run_units(StreamHandle stream, const AttentionParams& p, std::int64_t first, std::int64_t count) {
  using Tile = LatentTile<T, kBytes, kGroups>;
  constexpr std::size_t kSharedBytes = sizeof(typename Tile::Shared);
  static_assert(kSharedBytes <= 99 << 10, "more shared memory than compute capability 8.9 has");
  allow_shared(latent_kernel<T, kBytes, kGroups>, kSharedBytes);
  launch(stream, static_cast<unsigned>(count), Tile::kThreads, kSharedBytes, latent_kernel<T, kBytes, kGroups>, p,
         first);
}

template <class T, bool kBytes>
void run_tiles(StreamHandle stream, const AttentionParams& p) {
  run_units<T, kBytes, kNarrowRows / kTileRows>(stream, p, 0, p.work.narrow_units);
  run_units<T, kBytes, wide_rows(kMaxLatentKey, true) / kTileRows>(stream, p, p.work.narrow_units,
                                                                   p.work.wide_units);
}

}  // namespace

bool takes_latent(const AttentionParams& p) {
  const KvLayout& layout = p.cache.layout;
  return layout.values_in_keys > 0 && layout.values_in_keys <= kMaxTiledLatent &&
         layout.score_dim() % 8 == 0 &&
         (p.chosen == nullptr || p.group % wide_rows(layout.head_dim, true) == 0);
}

void attention_latent(StreamHandle stream, const AttentionParams& p) {
  for_activation(p.q.format, [&](auto t) {
    using T = decltype(t);
    if constexpr (sizeof(T) == 2) {
      p.cache.layout.bits == 8 ? run_tiles<T, true>(stream, p) : run_tiles<T, false>(stream, p);
    }
  });
}

}  // namespace octavo::cuda
