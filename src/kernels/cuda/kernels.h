// Declarations of the code that nvcc compiles, and of the host's functions that it calls. So nvcc does not
// include ops.h, and host code does not include CUDA's headers.
//
// An operator with plain arguments (views and numbers) is a run_NAME in a .cu file, and its kernels have
// these arguments as their parameters (views.h). Every other operator has a ..Params struct with device
// addresses, sizes and formats, which run.cc fills.
//
// Sizes are 64-bit; addresses.h computes addresses.
#pragma once

#include <cstdint>

#include "kernels/cuda/addresses.h"
#include "kernels/fp8_rounding.h"
#include "kernels/operators/list.h"

struct CUstream_st;

namespace octavo {

enum class DType : std::uint8_t;
struct KvLayer;
class Stream;
class Weight;
#define OCTAVO_DECLARE_ARGS(name, Args, backends) struct Args;
OCTAVO_OPERATORS(OCTAVO_DECLARE_ARGS)
#undef OCTAVO_DECLARE_ARGS

namespace cuda {

using StreamHandle = CUstream_st*;

// Declares run_NAME for each row of operators/list.h. Operators that this backend lacks are not defined.
#define OCTAVO_DECLARE_RUN(name, Args, backends) void run_##name(Stream& stream, const Args& args);
OCTAVO_OPERATORS(OCTAVO_DECLARE_RUN)
#undef OCTAVO_DECLARE_RUN

// f8: e4m3. q4: unsigned codes, two in a byte, the first one in the lower half. e2m1: packed like q4; a code
// has a sign, two bits of exponent and one bit of fraction, and kernels read it as twice its number, which is
// an integer. q8: signed codes. levels: codes of KV caches (kv_codes.h), packed like q4.
enum class Format : std::uint8_t { f32, f16, bf16, f8, q4, e2m1, q8, levels };

// A matrix whose rows are contiguous.
struct Rows {
  void* data = nullptr;
  Format format = Format::f32;
  std::int64_t stride = 0;  // distance between rows, in elements
};

// The columns of a row of weights (numbers or codes) are padded with zeros to a multiple of kWeightColumns.
constexpr std::int64_t kWeightColumns = 32;
// The same for codes with WeightRows::by_lanes.
constexpr std::int64_t kLaneColumns = 128;

// Scale of a group of columns in a row: number = scale * (code - zero) - min. `offset` is the zero if
// WeightRows::zeros is set. Otherwise `offset` is the min, and all groups have the same zero. For f8 and
// e2m1: number = scale * value.
struct GroupScale {
  float scale, offset;
};

// A matrix of weights: numbers (f32, f16, bf16) or quantised rows. A quantised row consists of a GroupScale
// for each group of columns, followed by the codes (q4, e2m1, q8, f8).
struct WeightRows {
  const std::byte* data = nullptr;
  Format format = Format::f32;
  std::int64_t stride = 0;  // distance between rows in bytes; a multiple of 16
  // codes_at, group and the fields after them are used only if the rows have codes
  std::int64_t codes_at = 0;  // offset of the codes in a row, in bytes
  int group = 0;              // number of columns in a group: all columns, or a multiple of 8
  int groups = 0;
  bool zeros = false;
  float zero = 0;
  bool by_lanes = false;  // whether codes are in the order of wgmma's fragments (index_of()); false if groups
                          // have mins, or if products round x
  Fp8Rounding rounding = {};
};

Format format_of(DType type);
StreamHandle handle_of(Stream& stream);
const WeightRows& numbers_of(const Weight& weight);
// Returns memory for `count` numbers, which one operator at a time uses.
float* scratch_of(Stream& stream, std::int64_t count);

// Returns the position of a column's code in its row. by_lanes: within 128 columns (64 for 8 bits), lane t of
// four has the columns 2t and 2t + 1 of every eight columns, as wgmma requires, in 16 bytes. The two codes
// are half a register apart, so that one instruction extracts both.
OCTAVO_HOST_DEVICE constexpr std::int64_t index_of(const WeightRows& w, std::int64_t column) {
  if (!w.by_lanes) return column;
  const std::int64_t eight = column / 8, t = column / 2 % 4, second = column % 2;
  if (w.format == Format::q4 || w.format == Format::e2m1)
    return column / 128 * 128 + 32 * t + eight % 16 / 4 * 8 + eight % 4 + 4 * second;
  return column / 64 * 64 + 16 * t + eight % 8 / 2 * 4 + eight % 2 + 2 * second;
}

// Properties of a Hopper device, and memory for thread blocks that share a tile.
struct Hopper {
  int processors = 0;     // number of multiprocessors; 0: the device is not a Hopper
  float* sums = nullptr;  // partial sums of shared tiles
  std::int64_t sums_room = 0;
  std::int32_t* arrived = nullptr;  // kMostSharedTiles counters, which are 0 between kernels
};
constexpr std::int64_t kMostSharedTiles = 4096;

// A 16-bit matrix that is copied in tiles of 64 columns and `tile_rows` rows. Rows begin at multiples of 16
// bytes. Elements outside the matrix are read as zero.
struct TileSource {
  const void* data;
  std::int64_t rows, columns, stride_bytes;
  int tile_rows;  // at most 256
};

// Scales of rows of x in fp8. Row i has the scales data[i * groups ..]; `group` columns share a scale, which
// are a multiple of kFp8Columns or the whole row.
struct XScales {
  const float* data = nullptr;
  std::int64_t group = 0, groups = 0;
};

struct MatmulParams {
  std::int64_t m, rows, cols;
  Rows x;
  WeightRows w;       // numbers in the format of x, or codes
  const float* bias;  // null: no bias
  Rows y;
  const std::int32_t* x_rows = nullptr;  // row i of y uses row x_rows[i] of x; null: row i
  // Number of independent products. For head h, x begins at element h * x_head, y at element h * y_head, and
  // w at row h * rows.
  int heads = 1;
  std::int64_t x_head = 0, y_head = 0;
  Hopper hopper = {};
  XScales x_scales =
      {};  // if x is in fp8; then the columns of x are padded with zeros to a multiple of kFp8Columns
};
void matmul(StreamHandle stream, const MatmulParams& p);

struct GroupedMatmulParams {
  MatmulParams product;       // sizes of the product of each expert; w has no data
  const std::byte* const* w;  // host memory: address of each expert's matrix
  std::int64_t experts;
  const std::int32_t* starts;
};
void grouped_matmul(StreamHandle stream, const GroupedMatmulParams& p);

// Rounds rows to fp8 for a product: writes codes, the zeros of padding columns, and scales.
struct RoundParams {
  Rows x;
  std::int64_t rows, cols;
  Fp8Rounding rounding;
  std::uint8_t* codes;  // rows of codes_stride bytes
  std::int64_t codes_stride;
  float* scales;  // [rows, rounding.groups(cols)]
};
void round_rows(StreamHandle stream, const RoundParams& p);

// Rows of a product of experts in device memory, and the same in pinned host memory (host_products.h). If x
// and y are f16, their copies are f32.
struct HostRowsParams {
  Rows x, host_x;  // [m, cols]
  std::int64_t m, cols;
  const std::int32_t* rows;  // [pairs]; null: row i of y uses row i of x
  std::int32_t* host_rows;
  std::int64_t pairs;
  const std::int32_t* starts;  // [experts + 1]
  std::int32_t* host_starts;
  std::int64_t experts;
  const float* bias;  // [experts, outputs]; null: no bias
  float* host_bias;
  std::int64_t bias_stride;
  Rows y, host_y;  // [pairs, outputs]
  std::int64_t outputs;
};
void send_rows(StreamHandle stream, const HostRowsParams& p);  // all except y, to the host
void take_rows(StreamHandle stream, const HostRowsParams& p);  // y, to the device

struct KvCache {
  std::byte* data;
  KvLayout layout;
  Format format;
};
KvCache cache_of(const KvLayer& cache);

// Work of one thread block, for every KV head (attention_plan.h). A unit without rows is empty.
struct AttentionUnit {
  std::int32_t sequence = 0, row_begin = 0, row_end = 0, piece_begin = 0, piece_end = 0;
  std::int32_t merge = -1;  // index of the AttentionMerge that receives the partial states; -1: the output is
                            // written directly
  // If true, the rows belong to several sequences, which begin with the same pieces as `sequence`: row r is a
  // row of the query AttentionWork::shared[r / group], whose merge receives the states. Positions of rows
  // ascend.
  bool shared = false;
};
// A query of a unit with rows of several sequences.
struct SharedQuery {
  std::int32_t sequence = 0, row = 0;    // the sequence, and the index in it of the query's first row
  std::int32_t query = 0, position = 0;  // index in the step, and position in the sequence
  std::int32_t merge = 0;
};
// Rows whose pieces are computed by several units. A merge without rows is empty. A state has head_dim + 2
// floats: the values, the maximum, the sum.
struct AttentionMerge {
  std::int32_t sequence = 0, row_begin = 0, row_end = 0, piece_begin = 0, piece_end = 0;
  std::int64_t first_state = 0;
};

// The sequences of the step, and their blocks.
struct SequenceTables {
  const std::int32_t* query_starts;
  const std::int32_t* lengths;
  const std::int32_t* tables;
  const std::int64_t* table_starts;  // per sequence: index in `tables` of its first block
};
// Units of work, planned by attention_plan.h.
struct AttentionWork {
  const AttentionUnit* units;
  std::int64_t narrow_units, wide_units;  // numbers of units; narrow ones (at most kNarrowRows rows) come
                                          // first
  bool wide_by_wgmma = false;             // whether attention_wgmma.cu computes the wide units
  const AttentionMerge* merges;
  std::int64_t merge_count, merge_rows_max;
  float* states;
  const SharedQuery* shared = nullptr;
};

// Biases by distance, [q_heads, 2 * furthest + 1] (AttentionArgs::distance_bias). null: none.
struct DistanceTable {
  const float* numbers = nullptr;
  int furthest = 0;
};

struct AttentionParams {
  Rows q, out;
  int q_heads, group;  // number of query heads, and number of query heads per KV head
  KvCache cache;
  SequenceTables sequences;
  AttentionWork work;
  float scale;
  int window, chunk;
  bool causal = true;
  float soft_cap;
  const float* slopes;                   // [q_heads]; null: no ALiBi
  DistanceTable distance_bias = {};
  const float* sinks;                    // [q_heads]; null: no sinks
  // AttentionArgs::chosen: for each query and KV head, chosen_most runs of chosen_run tokens; null: all
  // tokens
  const std::int32_t* chosen = nullptr;
  std::int64_t chosen_stride = 0, chosen_head_stride = 0, chosen_most = 0;
  int chosen_run = 1;
};
constexpr int kPieceTokens = 128;
constexpr int kMaxLatentKey = 1152;   // maximum width of a key of latent attention
constexpr int kMaxTiledLatent = 512;  // maximum width of a value of latent attention on tensor cores
constexpr int kNarrowRows = 16;
constexpr int wide_rows(int head_dim, bool latent) { return head_dim > 128 || latent ? 32 : 64; }
constexpr int kWgmmaRows = 128;  // number of rows in a wide unit with wgmma
void attention(StreamHandle stream, const AttentionParams& p);

// Rotates each head (kv_codes.h). `from` and `to` may be the same memory.
struct RotateHeadsParams {
  Rows from, to;  // [rows, heads * dim]
  std::int64_t rows, heads;
  int dim;  // at most kMaxKey
};
void rotate_heads(StreamHandle stream, const RotateHeadsParams& p);

// See ChooseTokensArgs. Queries are processed in chunks, so that their scores fit into `scores`.
struct ChooseParams {
  Rows q;  // [n, heads, index_dim]
  std::int64_t n, heads;
  std::int64_t q_head;  // distance between heads, in elements
  Rows weights;
  KvCache cache;
  std::int64_t rate = 1;  // number of tokens per entry of the cache
  std::int64_t sequence_count;
  SequenceTables sequences;
  std::int64_t longest = 0;  // number of tokens of the longest sequence
  float* scores = nullptr;   // [queries_at_once, score_stride]
  std::int64_t score_stride = 0, queries_at_once = 0;
  std::int32_t* chosen;
  std::int64_t chosen_stride, most;
};
void choose_tokens(StreamHandle stream, const ChooseParams& p);

// See ChooseBlocksArgs.
struct ChooseBlocksParams {
  Rows q;  // [n, heads, head_dim]
  std::int64_t n, heads;
  std::int64_t q_head;  // distance between heads, in elements
  KvCache cache;
  std::int64_t sequence_count;
  SequenceTables sequences;
  int block, local;
  std::int64_t most_blocks;  // of the longest sequence
  std::int32_t* chosen;
  std::int64_t chosen_stride, chosen_head, most;
};
void choose_blocks(StreamHandle stream, const ChooseBlocksParams& p);

// Attention for caches with KvSpec::shared_rows.
struct RowAttentionParams {
  Rows q;  // [n, heads, dim]
  Rows out;
  std::int64_t n, heads, dim;
  KvCache cache, entries;  // entries without data: there are none
  SequenceTables sequences, entry_sequences;
  std::int64_t sequence_count;
  int window, rate;  // 0: no window; number of tokens per entry
  float scale;
  const float* sinks;                    // [heads]; null: no sinks
  const std::int32_t* chosen = nullptr;  // [n, chosen_most]: entries; null: all entries
  std::int64_t chosen_stride = 0, chosen_most = 0;
};
constexpr int kMaxRowDim = 1024;  // maximum width of a row
void row_attention(StreamHandle stream, const RowAttentionParams& p);

// See cuda_add_parts().
void add_parts(StreamHandle stream, float* sum, const float* parts, std::int64_t count, int ranks, int own);

}  // namespace cuda
}  // namespace octavo
