// Attention on Hopper's tensor cores, after FlashAttention-3 (Shah et al., 2024). A thread block processes
// rows of one sequence and one KV head, 64 per warpgroup, piece by piece, as in attention.cu. wgmma computes
// the scores of a complete piece from queries and keys in shared memory. For the weighted sum of values,
// wgmma reads the probabilities from registers.
//
// While a piece is processed, keys and values of the next pieces are copied. Warpgroups start computing
// scores one after the other, so that one uses the tensor cores while others compute probabilities.
//
// Sums have the same order as in attention.cu, step by step, so that prompts and decoding give the same bits.
#include "kernels/cuda/attention_pieces.h"
#include "kernels/cuda/wgmma.h"

namespace octavo::cuda {
namespace {

constexpr int kGroupRows = 64;  // number of rows per warpgroup
constexpr int kGroups = kWgmmaRows / kGroupRows;
constexpr int kStages = 2;  // number of pieces that shared memory holds

template <class T, int kDim>
struct Tile {
  static constexpr int kThreads = kGroups * kWarpgroup, kRows = kGroups * kGroupRows;
  static constexpr int kTiles = kDim / kTileColumns;  // number of tiles of 64 columns
  // sizes of tiles in bytes
  static constexpr int kQueryBytes = kRows * kTileRowBytes, kTokenBytes = kPieceTokens * kTileRowBytes;

  struct Shared {
    unsigned char queries[kTiles][kQueryBytes];
    unsigned char keys[kStages][kTiles][kTokenBytes],
        values[kStages][kTiles][kTokenBytes];        // tiles of the pieces in shared memory
    const std::byte* tokens[kStages][kPieceTokens];  // addresses in the KV cache of the keys of these pieces;
                                                     // null: no row sees the token
  };
  static constexpr std::size_t kSharedBytes = sizeof(Shared) + kSwizzleBytes;

  const AttentionParams& p;
  const AttentionUnit unit;
  const SequenceRows rows;
  const int first_token, past_token;  // range of tokens that any row of the unit sees
  const int past_piece;
  const int head;
  const int group, groups;  // warpgroup of this thread, and the number of warpgroups that have rows
  Shared& shared;
  const LaneRows mine;  // rows of this warp
  LaneState<kDim / 8> state;

  __device__ Tile(const AttentionParams& params, const AttentionUnit& of_unit, int past)
      : p(params),
        unit(of_unit),
        rows(params, of_unit.sequence),
        first_token(rows.begin(of_unit.row_begin)),
        past_token(rows.end(of_unit.row_end - 1)),
        past_piece(past),
        head(static_cast<int>(block_y())),
        group(thread() / kWarpgroup),
        groups((of_unit.row_end - of_unit.row_begin + kGroupRows - 1) / kGroupRows),
        shared(*reinterpret_cast<Shared*>(memory_of_tiles())),
        mine(rows, unit, warp() * kTileRows) {}

  // Starts the copy of queries. Elements after head_dim and rows after the last row of the unit are zeros.
  __device__ void begin_queries() {
    constexpr int kChunks = kDim / 8;
    const int dim = p.cache.layout.head_dim;
    for (int i = thread(); i < kRows * kChunks; i += kThreads) {
      const int row = unit.row_begin + i / kChunks, chunk = i % kChunks;
      const bool valid = row < unit.row_end && chunk * 8 < dim;
      const T* from = static_cast<const T*>(p.q.data);
      if (valid) from += element_at(rows.query(row), p.q.stride, rows.column(row, head, dim) + chunk * 8);
      copy_async(shared.queries[chunk / 8] + swizzled(i / kChunks, chunk % 8), from, valid);
    }
  }

  // Computes the addresses of a piece's tokens. All threads see them after the next barrier. The last
  // warpgroup computes them, because it is the last to start its scores and would otherwise be idle.
  __device__ void locate(int piece) {
    static_assert(kWarpgroup == kPieceTokens);
    const int i = kThreads - 1 - thread(), token = piece * kPieceTokens + i;
    if (i >= kPieceTokens) return;
    shared.tokens[piece % kStages][i] =
        token >= first_token && token < past_token ? cached(p, rows, 0, head, token) : nullptr;
  }

  // Starts copies of a piece's keys and values. Tokens that no row of the unit sees are not read; their
  // copies are zeros.
  __device__ void begin_piece(int piece) {
    if (piece < past_piece) {
      constexpr int kChunks = kDim / 8;           // number of 16-byte chunks in a vector
      constexpr int kApart = kThreads / kChunks;  // distance between the tokens that a thread copies
      static_assert(kThreads % kChunks == 0 && kApart % 8 == 0);
      const KvLayout& layout = p.cache.layout;
      const int first = thread() / kChunks, chunk = thread() % kChunks;
      const bool in_vector = chunk * 8 < layout.head_dim;
      const std::int64_t to_value = layout.vector(0, 1, 0, 0) - layout.vector(0, 0, 0, 0);
      const int target = swizzled(first, chunk % 8);
      unsigned char* const keys = shared.keys[piece % kStages][chunk / 8] + target;
      unsigned char* const values = shared.values[piece % kStages][chunk / 8] + target;
#pragma unroll 2
      for (int i = 0; i < kPieceTokens; i += kApart) {
        if (first + i >= kPieceTokens) break;
        const std::byte* key = shared.tokens[piece % kStages][first + i];
        const bool valid = in_vector && key != nullptr;
        key = valid ? key + chunk * 16 : p.cache.data;
        copy_async(keys + i * kTileRowBytes, key, valid);
        copy_async(values + i * kTileRowBytes, valid ? key + to_value : key, valid);
      }
    }
    commit_copies();
  }

  __device__ void begin_scores(int piece, float (&scores)[kTokenTiles][4]) const {
    const std::uint64_t q = operand(shared.queries[0] + group * kGroupRows * kTileRowBytes);
    const std::uint64_t k = operand(shared.keys[piece % kStages][0]);
    begin_products();
#pragma unroll
    for (int d = 0; d < kDim / 16; ++d) {  // 16 columns are 32 bytes, or two units of a descriptor
      const int within = d % 4 * 2;
      multiply_tiles<T, kPieceTokens>(registers_of(scores), q + d / 4 * (kQueryBytes / 16) + within,
                                      k + d / 4 * (kTokenBytes / 16) + within, d > 0);
    }
    commit_products();
  }

  // Computes 64 columns (tile `tile`) of the piece's weighted values.
  __device__ void mix(int piece, int tile, const std::uint32_t (&probabilities)[kTokenTiles / 2][4],
                      float (&mixed)[kTileColumns / 8][4]) const {
    const unsigned char* const values = shared.values[piece % kStages][tile];
    const std::uint64_t v = operand(values);
    begin_products();
#pragma unroll
    for (int k = 0; k < kTokenTiles / 2; ++k)
      multiply_rows<T>(registers_of(mixed), probabilities[k], v + k * (16 * kTileRowBytes / 16), k > 0);
    commit_products();
    wait_products<0>(registers_of(mixed));
#pragma unroll
    for (int k = 0; k < kTokenTiles / 2; ++k) keep_until_here(probabilities[k]);
    const auto at = [&](int token, int column) {
      return reinterpret_cast<const T*>(values + swizzled(token, column / 8));
    };
    mend_values<T>(mine, piece, probabilities, at, mixed);
  }

  // Merges a piece into the states of the warpgroup's rows, after its scores have been computed.
  __device__ void add_piece(int piece, float (&scores)[kTokenTiles][4]) {
    const float scale = make_scores(p, rows, head, mine, piece, 0, scores);
    float piece_max[2], piece_sum[2];
    find_most(scores, piece_max);
    make_probabilities(scores, piece_max, scale * kLog2E, piece_sum);
    std::uint32_t probabilities[kTokenTiles / 2][4];
    pack_probabilities<T>(scores, probabilities);
#pragma unroll
    for (int i = 0; i < 2; ++i) piece_max[i] *= scale;

    const int dim = p.cache.layout.head_dim;
    const LaneStates states(p, unit, rows, mine, head, piece);
    Weights weights[2];
    if (unit.merge < 0) {
      state.merge_sums(piece_max, piece_sum, weights);
    } else {
      states.store_sums(dim, piece_max, piece_sum);
    }
#pragma unroll
    for (int tile = 0; tile < kTiles; ++tile) {
      float mixed[kTileColumns / 8][4];
      mix(piece, tile, probabilities, mixed);
      if (unit.merge < 0) {
        state.merge_values(tile * (kTileColumns / 8), mixed, weights);
      } else {
        states.store_values(dim, tile * kTileColumns, mixed);
      }
    }
  }

  __device__ void run_pieces(int first_piece) {
    for (int i = 0; i < kStages; ++i) locate(first_piece + i);
    __syncthreads();
    begin_queries();
    for (int i = 0; i < kStages - 1; ++i) begin_piece(first_piece + i);
#pragma unroll 1
    for (int piece = first_piece; piece < past_piece; ++piece) {
      wait_copies<kStages - 2>();
      show_to_products();
      __syncthreads();  // The piece has arrived now, and no thread still uses the previous piece.
      const auto begin_next = [&] {
        begin_piece(piece + kStages - 1);
        locate(piece + kStages);
      };
      if (group > 0) begin_next();
      if (group < groups) {
        float scores[kTokenTiles][4];
        // waits until the warpgroup before this one has started its scores
        if (group > 0) named_barrier(group, 2 * kWarpgroup);
        begin_scores(piece, scores);
        if (group + 1 < groups) named_arrival(group + 1, 2 * kWarpgroup);
        if (group == 0) begin_next();
        wait_products<0>(registers_of(scores));
        add_piece(piece, scores);
      }
    }
    wait_copies<0>();
    if (unit.merge < 0) state.template store<T>(p, rows, mine, unit.row_end, head, 0);
  }
};

template <class T, int kDim>
__global__ void __launch_bounds__(kGroups* kWarpgroup, 1)
    attention_wgmma_kernel(AttentionParams p) {
#if !defined(__CUDACC__) || OCTAVO_WGMMA
  wait_for_kernels();
  const AttentionUnit unit = p.work.units[p.work.narrow_units + block_x()];
  if (unit.row_begin == unit.row_end) return;
  const Pieces seen = pieces_of(SequenceRows(p, unit.sequence), unit.row_begin, unit.row_end - 1);
  Tile<T, kDim> tile(p, unit, unit.piece_end < seen.end ? unit.piece_end : seen.end);
  tile.run_pieces(unit.piece_begin > seen.begin ? unit.piece_begin : seen.begin);
#endif
}

template <class T, int kDim>
void run_units(StreamHandle stream, const AttentionParams& p) {
  using Units = Tile<T, kDim>;
  const auto kernel = attention_wgmma_kernel<T, kDim>;
  static_assert(Units::kSharedBytes <= 227 << 10);
  allow_shared(kernel, Units::kSharedBytes);
  launch(stream, {static_cast<unsigned>(p.work.wide_units), static_cast<unsigned>(p.cache.layout.kv_heads)},
         Units::kThreads, Units::kSharedBytes, kernel, p);
}

}  // namespace

void attention_wgmma(StreamHandle stream, const AttentionParams& p) {
  for_activation(p.q.format, [&]<class T>(T) {
    if constexpr (sizeof(T) == 2)
      p.cache.layout.head_dim <= 64 ? run_units<T, 64>(stream, p) : run_units<T, 128>(stream, p);
  });
}

}  // namespace octavo::cuda
