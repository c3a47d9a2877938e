// Declarations of the kernels, with plain arguments: device addresses, sizes and formats. So nvcc does not
// include ops.h, and host code does not include CUDA's headers.
//
// Sizes are 64-bit; addresses.h computes addresses.
#pragma once

#include <cstdint>

#include "kernels/cuda/addresses.h"
#include "kernels/draw_rule.h"
#include "kernels/kinds.h"

struct CUstream_st;

namespace octavo::cuda {

using StreamHandle = CUstream_st*;

// f8: e4m3. q4: unsigned codes, two in a byte, the first one in the lower half. e2m1: packed as q4; the codes
// are doubled numbers (sign, two bits of exponent, one bit of fraction). q8: signed codes.
enum class Format : std::uint8_t { f32, f16, bf16, f8, q4, e2m1, q8 };

// A matrix whose rows are contiguous.
struct Rows {
  void* data = nullptr;
  Format format = Format::f32;
  std::int64_t stride = 0;  // distance between rows, in elements
};

// The columns of a row of weights (numbers or codes) are padded with zeros to a multiple of kWeightColumns.
constexpr std::int64_t kWeightColumns = 32;
// same for codes with by_lanes
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
  // the fields below are for codes only
  std::int64_t codes_at = 0;  // offset of the codes in a row, in bytes
  int group = 0;              // number of columns in a group: all columns, or a multiple of 8
  int groups = 0;
  bool zeros = false;
  float zero = 0;
  bool by_lanes = false;  // whether codes are in the order of wgmma's fragments (place_of()); only without
                          // mins
};

// Returns the position of a column's code in its row. by_lanes: within 128 columns (64 for 8 bits), lane t of
// four has the columns 2t and 2t + 1 of every eight columns, as wgmma requires, in 16 bytes. The two codes
// are half a register apart, so that one instruction extracts both.
OCTAVO_HOST_DEVICE constexpr std::int64_t place_of(const WeightRows& w, std::int64_t column) {
  if (!w.by_lanes) return column;
  const std::int64_t eight = column / 8, t = column / 2 % 4, second = column % 2;
  if (w.format == Format::q4 || w.format == Format::e2m1)
    return column / 128 * 128 + 32 * t + eight % 16 / 4 * 8 + eight % 4 + 4 * second;
  return column / 64 * 64 + 16 * t + eight % 8 / 2 * 4 + eight % 2 + 2 * second;
}

struct NormParams {
  NormKind kind = NormKind::none;
  float eps = 0;
  const float* weight = nullptr;
  const float* bias = nullptr;  // null: no bias
};

struct EmbedParams {
  std::int64_t n, dim;
  const std::int32_t* ids;
  WeightRows table;
  float scale;
  const std::int32_t* positions;  // only with position_table
  WeightRows position_table;      // optional
  const std::int32_t* types;      // only with type_table
  WeightRows type_table;          // optional
  Rows out;
};
void embed(StreamHandle stream, const EmbedParams& p);

struct AddNormParams {
  std::int64_t n, dim;
  Rows residual;
  Rows delta;  // may be null
  float delta_scale;
  NormParams delta_norm, norm;
  bool replace;
  Rows out;  // may be null, as residual_scale
  const float* residual_scale = nullptr;
};
void add_norm(StreamHandle stream, const AddNormParams& p);

struct ActivateParams {
  std::int64_t n, hidden;
  Rows x, y;  // both in the same format
  Activation activation;
  bool gated;
  float alpha, limit;   // parameters of swigluoai
  const float* slopes;  // slopes of xielu
};
void activate(StreamHandle stream, const ActivateParams& p);

struct KeepTailParams {
  std::int64_t n, dim;
  Rows x;
  float deviations;
};
void keep_tail(StreamHandle stream, const KeepTailParams& p);

struct ScaleRowsParams {
  std::int64_t n, dim;
  Rows x, y;  // both in the same format
  const float* factors;
  const std::int32_t* rows;  // may be null
};
void scale_rows(StreamHandle stream, const ScaleRowsParams& p);

struct ClampParams {
  std::int64_t n, dim;
  Rows x, y;  // both in the same format
  const float *least, *most;
};
void clamp(StreamHandle stream, const ClampParams& p);

struct GateParams {
  std::int64_t n, heads, dim;
  Rows x, gate, y;             // all in the same format
  NormParams norm;             // with kind none, heads may have any size
  std::int64_t weight_stride;  // distance between the norm weights of two heads, in elements
  bool gate_first;
  Activation activation;
  float gate_scale;
};
void gate(StreamHandle stream, const GateParams& p);

struct StateParams {
  std::int64_t sequences;
  const std::int32_t *slots, *starts, *positions;
  const std::int32_t* copies;  // null: no copies
  float* data;
  std::int64_t stride;  // distance between slots, in floats
};

struct ConvParams {
  std::int64_t inputs, channels;
  int width;
  Rows x, y;            // x, y, x_gate and y_gate have the same format
  Rows x_gate, y_gate;  // may be null
  Rows weight;
  const float* bias;  // null: no bias
  bool silu;
  StateParams state;  // [width - 1, inputs] per slot
};
void causal_conv(StreamHandle stream, const ConvParams& p);

struct GatedDeltaParams {
  int key_heads, value_heads, key_dim, value_dim;
  bool tiled;
  Rows qkv, out;  // both in the same format
  Rows ba;
  const float *a_log, *dt_bias;
  bool by_row;  // true: a and dt_bias have one number for each row of a state
  float beta_scale;
  StateParams state;  // [value_heads, key_dim, value_dim] per slot
};
void gated_delta(StreamHandle stream, const GatedDeltaParams& p);

struct WkvParams {
  int heads, head_dim;
  Rows r, k, v, rate, gate, out;  // all in the same format
  Rows mix, first;                // in the same format as above; may be null
  Rows decay;
  const float *k_k, *k_a, *r_k;
  float eps;
  const float *norm_weight, *norm_bias;
  float norm_eps;
  StateParams state;  // [heads, head_dim, head_dim] per slot
};
void wkv(StreamHandle stream, const WkvParams& p);

struct TimeStepParams {
  float scale;
  const float* bias;
  float least, most;
};

struct ScanParams {
  int heads, groups, state_dim, head_dim;
  Rows xbc, dt, out;  // all in the same format; dt may be null
  TimeStepParams time_step;
  const float *a_log, *d;
  StateParams state;  // [heads, state_dim, head_dim] per slot
};
void scan(StreamHandle stream, const ScanParams& p);

struct StreamsParams {
  std::int64_t n, streams, dim;
  float* x;  // [n, streams, dim]
  std::int64_t token_stride, stream_stride;
  Rows router, coefs;
};
void predict_streams(StreamHandle stream, const StreamsParams& p);

struct CorrectStreamsParams {
  StreamsParams streams;
  Rows before, out;
  const float* scale;  // may be null
};
void correct_streams(StreamHandle stream, const CorrectStreamsParams& p);

struct MatchSizeParams {
  std::int64_t n, dim;
  Rows x, like;
};
void match_size(StreamHandle stream, const MatchSizeParams& p);

struct ChannelScanParams {
  std::int64_t channels;
  int state_dim;
  Rows x, bc, dt, out;  // all in the same format
  TimeStepParams time_step;
  Rows a_log;
  const float* d;
  StateParams state;  // [state_dim, channels] per slot
};
void channel_scan(StreamHandle stream, const ChannelScanParams& p);

struct GatherRowsParams {
  std::int64_t n, dim;
  Rows x;
  const std::int32_t* rows;
  Rows out;
};
void gather_rows(StreamHandle stream, const GatherRowsParams& p);

struct PoolParams {
  std::int64_t sequences, dim;
  Rows x;
  const std::int32_t* starts;
  Pool pool;
  Rows out;
};
void pool(StreamHandle stream, const PoolParams& p);

struct PutSampledParams {
  std::int64_t n;
  std::int32_t* ids;
  const std::int32_t* tokens;
  const std::int32_t* sampled;
  const std::int32_t* rows;
};
void put_sampled(StreamHandle stream, const PutSampledParams& p);

struct ScaleLogitsParams {
  std::int64_t n, vocab;
  Rows logits;
  float scale, soft_cap;
};
void scale_logits(StreamHandle stream, const ScaleLogitsParams& p);

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
};
void matmul(StreamHandle stream, const MatmulParams& p);

struct RouteParams {
  std::int64_t n, experts;
  int chosen;
  bool renormalise;
  RouterScores scores;
  float scale;
  int groups, groups_kept, group_best;
  float jitter;
  const float* bias;    // null: no bias
  const float* scales;  // null: no scales
  Rows logits, weights;
  std::int32_t *places, *tokens, *starts;
};
void route(StreamHandle stream, const RouteParams& p);

struct GroupedMatmulParams {
  MatmulParams product;       // sizes of the product of each expert; w has no data
  const std::byte* const* w;  // host memory: address of each expert's matrix
  std::int64_t experts;
  const std::int32_t* starts;
};
void grouped_matmul(StreamHandle stream, const GroupedMatmulParams& p);

struct CombineParams {
  std::int64_t n, dim, chosen;
  Rows y, weights;  // weights may be null
  const std::int32_t* places;
  Rows shared;               // may be null
  const float* shared_gate;  // may be null
  Rows out;
};
void combine(StreamHandle stream, const CombineParams& p);

struct AddRowsParams {
  std::int64_t places, dim;
  Rows x;
  const std::int32_t* rows;
  Rows y;
};
void add_rows(StreamHandle stream, const AddRowsParams& p);

struct KvCache {
  std::byte* data;
  KvLayout layout;
  Format format;
};

struct AnglesParams {
  std::int64_t n, pairs;
  const std::int32_t* positions;
  const float* frequencies;
  float scale;
  Rows cos, sin;
};
void angles(StreamHandle stream, const AnglesParams& p);

struct QkvStoreParams {
  std::int64_t n;
  Rows qkv;
  int q_heads;
  NormParams q_norm, k_norm;
  std::int64_t q_weight_stride, k_weight_stride;  // distance between the norm weights of two heads, in
                                                  // elements; 0: all heads share them
  bool norm_whole_row, norm_turned;
  NormParams v_norm = {};
  bool stores = true;  // whether keys and values are written; false: qkv contains only queries
  Rows cos, sin;  // [n, rotary_dim / 2]
  int rotary_dim;
  bool interleaved;
  const std::int64_t* slots;
  KvCache cache;
  Rows q_out;
};
void qkv_store(StreamHandle stream, const QkvStoreParams& p);

// see LatentStoreArgs
struct LatentStoreParams {
  std::int64_t n;
  int heads;  // number of query heads
  Rows kv;
  Rows index_keys;  // in the format of q; may be null
  NormParams norm;
  Rows cos, sin;
  bool interleaved;
  const std::int64_t* slots;
  KvCache cache;
  Rows q, q_out;                    // both in the same format; may be the same memory
  std::int64_t q_dim;               // number of elements of a head of q
  std::int64_t q_head, q_out_head;  // distance between heads, in elements
};
void latent_store(StreamHandle stream, const LatentStoreParams& p);

// Work of one thread block, for every KV head (attention_plan.h). A unit without rows is empty.
struct AttentionUnit {
  std::int32_t sequence = 0, row_begin = 0, row_end = 0, piece_begin = 0, piece_end = 0;
  std::int32_t merge = -1;  // index of the AttentionMerge that receives the partial states; -1: the output is
                            // written directly
};
// Rows whose pieces several units compute. A merge without rows is empty. A state has head_dim + 2 floats:
// the values, the maximum, the sum.
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
  const float* sinks;                    // [q_heads]; null: no sinks
  const std::int32_t* chosen = nullptr;  // [n, chosen_most]: ChooseTokensArgs::chosen; null: all tokens
  std::int64_t chosen_stride = 0, chosen_most = 0;
};
constexpr int kPieceTokens = 128;
constexpr int kMaxLatentKey = 1152;   // maximum width of a key of latent attention
constexpr int kMaxTiledLatent = 512;  // maximum width of a value of latent attention on tensor cores
constexpr int kNarrowRows = 16;
constexpr int wide_rows(int head_dim, bool latent) { return head_dim > 128 || latent ? 32 : 64; }
constexpr int kWgmmaRows = 128;  // number of rows in a wide unit with wgmma
void attention(StreamHandle stream, const AttentionParams& p);

// See ChooseTokensArgs. Queries are processed in chunks, so that their scores fit into `scores`.
struct ChooseParams {
  Rows q;  // [n, heads, index_dim]
  std::int64_t n, heads;
  std::int64_t q_head;  // distance between heads, in elements
  Rows weights;
  KvCache cache;
  std::int64_t sequence_count;
  SequenceTables sequences;
  std::int64_t longest = 0;  // number of tokens of the longest sequence
  float* scores = nullptr;   // [queries_at_once, score_stride]
  std::int64_t score_stride = 0, queries_at_once = 0;
  std::int32_t* chosen;
  std::int64_t chosen_stride, most;
};
void choose_tokens(StreamHandle stream, const ChooseParams& p);

struct ListParams {
  const std::int32_t* starts = nullptr;  // null: every list is empty
  const std::int32_t* ids = nullptr;
};
// see SampleArgs
struct SampleParams {
  std::int64_t rows, vocab;
  Rows logits;
  float* raw;  // [rows, vocab]: buffer for the unprocessed logits; null is allowed if nothing changes the
               // logits
  const DrawRule* rules;
  ListParams history, bias, reported;
  const std::int32_t* history_counts;
  const float* bias_values;
  const std::int32_t* mask;
  std::int64_t mask_stride;
  bool processed;
  std::int32_t *out_id, *out_rank, *out_top_ids;
  float *out_logprob, *out_top_logprobs;
  std::int64_t top_stride;  // distance between rows of both `top` arrays, in elements
};
void sample(StreamHandle stream, const SampleParams& p);

}  // namespace octavo::cuda
