// The kernels, with plain arguments: device addresses, sizes and formats. So nvcc does not include ops.h, and
// host code does not include CUDA's headers.
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

// f8: e4m3. q4: unsigned codes, two in a byte, the first one in the lower half. e2m1: as q4, with codes of
// doubled numbers (a sign, two bits of exponent, one bit of fraction). q8: signed codes.
enum class Format : std::uint8_t { f32, f16, bf16, f8, q4, e2m1, q8 };

// A matrix whose rows are contiguous.
struct Rows {
  void* data = nullptr;
  Format format = Format::f32;
  std::int64_t stride = 0;  // in elements, from row to row
};

// The columns of a row of weights (numbers or codes) are padded with zeros to a multiple of this.
constexpr std::int64_t kWeightColumns = 32;
// The multiple for codes with by_lanes.
constexpr std::int64_t kLaneColumns = 128;

// Scale of a group of columns in a row: number = scale * (code - zero) - min. If WeightRows::zeros is set,
// `offset` is the zero; otherwise it is the min, and all groups have the same zero. For f8 and e2m1: number =
// scale * value.
struct GroupScale {
  float scale, offset;
};

// A matrix of weights: numbers (f32, f16, bf16) or quantised rows. A quantised row consists of a GroupScale
// for each group of columns, followed by the codes (q4, e2m1, q8, f8).
struct WeightRows {
  const std::byte* data = nullptr;
  Format format = Format::f32;
  std::int64_t stride = 0;  // in bytes, from row to row; a multiple of 16
  // For codes:
  std::int64_t codes_at = 0;  // in bytes, from the start of a row
  int group = 0;              // number of columns in a group: all, or a multiple of 8
  int groups = 0;
  bool zeros = false;
  float zero = 0;
  bool by_lanes = false;  // codes are in the order of wgmma's fragments (place_of()); without mins
};

// Position of a column's code in its row. by_lanes: within 128 columns (64 for 8 bits), lane t of four has
// the columns 2t and 2t + 1 of every eight columns, as wgmma requires, in 16 bytes. The two codes are half a
// register apart, so that one instruction extracts both.
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
  const float* bias = nullptr;  // optional
};

struct EmbedParams {
  std::int64_t n, dim;
  const std::int32_t* ids;
  WeightRows table;
  float scale;
  const std::int32_t* positions;  // with position_table
  WeightRows position_table;      // optional
  const std::int32_t* types;      // with type_table
  WeightRows type_table;          // optional
  Rows out;
};
void embed(StreamHandle stream, const EmbedParams& p);

struct AddNormParams {
  std::int64_t n, dim;
  Rows residual;
  Rows delta;  // optional
  float delta_scale;
  NormParams delta_norm, norm;
  bool replace;
  Rows out;  // optional, as the next field
  const float* residual_scale = nullptr;
};
void add_norm(StreamHandle stream, const AddNormParams& p);

struct ActivateParams {
  std::int64_t n, hidden;
  Rows x, y;  // equal formats
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
  Rows x, y;  // equal formats
  const float* factors;
  const std::int32_t* rows;  // optional
};
void scale_rows(StreamHandle stream, const ScaleRowsParams& p);

struct ClampParams {
  std::int64_t n, dim;
  Rows x, y;  // equal formats
  const float *least, *most;
};
void clamp(StreamHandle stream, const ClampParams& p);

struct GateParams {
  std::int64_t n, heads, dim;
  Rows x, gate, y;  // equal formats
  NormParams norm;  // kind none: heads may have any size
  std::int64_t weight_stride;  // from one head's weights of the norm to the next, in elements
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
  std::int64_t stride;  // in floats, from slot to slot
};

struct ConvParams {
  std::int64_t inputs, channels;
  int width;
  Rows x, y;            // equal formats, also of x_gate and y_gate
  Rows x_gate, y_gate;  // optional
  Rows weight;
  const float* bias;  // null: none
  bool silu;
  StateParams state;  // per slot: [width - 1, inputs]
};
void causal_conv(StreamHandle stream, const ConvParams& p);

struct GatedDeltaParams {
  int key_heads, value_heads, key_dim, value_dim;
  bool tiled;
  Rows qkv, out;  // equal formats
  Rows ba;
  const float *a_log, *dt_bias;
  bool by_row;  // true: a and dt_bias have one number for each row of a state
  float beta_scale;
  StateParams state;  // per slot: [value_heads, key_dim, value_dim]
};
void gated_delta(StreamHandle stream, const GatedDeltaParams& p);

struct WkvParams {
  int heads, head_dim;
  Rows r, k, v, rate, gate, out;  // equal formats
  Rows mix, first;                // equal formats with the above; optional
  Rows decay;
  const float *k_k, *k_a, *r_k;
  float eps;
  const float *norm_weight, *norm_bias;
  float norm_eps;
  StateParams state;  // per slot: [heads, head_dim, head_dim]
};
void wkv(StreamHandle stream, const WkvParams& p);

struct TimeStepParams {
  float scale;
  const float* bias;
  float least, most;
};

struct ScanParams {
  int heads, groups, state_dim, head_dim;
  Rows xbc, dt, out;  // equal formats; dt is optional
  TimeStepParams time_step;
  const float *a_log, *d;
  StateParams state;  // per slot: [heads, state_dim, head_dim]
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
  const float* scale;  // optional
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
  Rows x, bc, dt, out;  // equal formats
  TimeStepParams time_step;
  Rows a_log;
  const float* d;
  StateParams state;  // per slot: [state_dim, channels]
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

// A device with Hopper's instructions, and the memory for blocks that share a tile.
struct Hopper {
  int processors = 0;     // number of processors; 0: the device is not a Hopper
  float* sums = nullptr;  // sums of slices of the shared tiles
  std::int64_t sums_room = 0;
  std::int32_t* arrived = nullptr;  // kMostSharedTiles counters, which are 0 between kernels
};
constexpr std::int64_t kMostSharedTiles = 4096;

// A 16-bit matrix that is copied in tiles of 64 columns and `tile_rows` rows. Rows begin at multiples of 16
// bytes. Elements outside the matrix read as zero.
struct TileSource {
  const void* data;
  std::int64_t rows, columns, stride_bytes;
  int tile_rows;  // at most 256
};

struct MatmulParams {
  std::int64_t m, rows, cols;
  Rows x;
  WeightRows w;       // numbers in x's format, or codes
  const float* bias;  // optional
  Rows y;
  const std::int32_t* x_rows = nullptr;  // row i of y uses row x_rows[i] of x; null: row i
  // Number of independent products. For head h, x begins at element h * x_head, y at element h * y_head, and
  // the rows of w at h * rows.
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
  const float* bias;    // optional
  const float* scales;  // optional
  Rows logits, weights;
  std::int32_t *places, *tokens, *starts;
};
void route(StreamHandle stream, const RouteParams& p);

struct GroupedMatmulParams {
  MatmulParams product;       // the product of all experts; w has no data
  const std::byte* const* w;  // host memory: the address of each expert's matrix
  std::int64_t experts;
  const std::int32_t* starts;
};
void grouped_matmul(StreamHandle stream, const GroupedMatmulParams& p);

struct CombineParams {
  std::int64_t n, dim, chosen;
  Rows y, weights;  // weights: optional
  const std::int32_t* places;
  Rows shared;               // optional
  const float* shared_gate;  // optional
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
  std::int64_t q_weight_stride, k_weight_stride;  // from one head's weights of the norm to the next, in
                                                  // elements; 0: all heads share them
  bool norm_whole_row, norm_turned;
  NormParams v_norm = {};
  bool stores = true;  // true: writes keys and values; false: qkv contains none
  Rows cos, sin;  // [n, rotary_dim / 2]
  int rotary_dim;
  bool interleaved;
  const std::int64_t* slots;
  KvCache cache;
  Rows q_out;
};
void qkv_store(StreamHandle stream, const QkvStoreParams& p);

// See LatentStoreArgs.
struct LatentStoreParams {
  std::int64_t n;
  int heads;  // number of query heads
  Rows kv;
  Rows index_keys;  // optional; in q's format
  NormParams norm;
  Rows cos, sin;
  bool interleaved;
  const std::int64_t* slots;
  KvCache cache;
  Rows q, q_out;                    // equal formats; may be the same memory
  std::int64_t q_dim;               // size of a head of q
  std::int64_t q_head, q_out_head;  // in elements, from head to head
};
void latent_store(StreamHandle stream, const LatentStoreParams& p);

// Work of one block, for every key head (attention_plan.h). If it has no rows, the block does nothing.
struct AttentionUnit {
  std::int32_t sequence = 0, row_begin = 0, row_end = 0, piece_begin = 0, piece_end = 0;
  std::int32_t merge = -1;  // index of the merge that receives the pieces' states; -1: results are written to
                            // the output
};
// Rows whose pieces are computed by several units; without rows, there is nothing to do. A state has head_dim
// + 2 floats: the values, the maximum, the sum.
struct AttentionMerge {
  std::int32_t sequence = 0, row_begin = 0, row_end = 0, piece_begin = 0, piece_end = 0;
  std::int64_t first_state = 0;
};

// The sequences of the step, and their blocks.
struct SequenceTables {
  const std::int32_t* query_starts;
  const std::int32_t* lengths;
  const std::int32_t* tables;
  const std::int64_t* table_starts;  // index in `tables` of each sequence's first block
};
// Units of work, as attention_plan.h plans them.
struct AttentionWork {
  const AttentionUnit* units;
  std::int64_t narrow_units, wide_units;  // units with at most kNarrowRows rows come first
  bool wide_by_wgmma = false;             // true: wide units are computed by attention_wgmma.cu
  const AttentionMerge* merges;
  std::int64_t merge_count, merge_rows_max;
  float* states;
};

struct AttentionParams {
  Rows q, out;
  int q_heads, group;  // number of query heads, and of query heads per key head
  KvCache cache;
  SequenceTables sequences;
  AttentionWork work;
  float scale;
  int window, chunk;
  bool causal = true;
  float soft_cap;
  const float* slopes;  // [q_heads]; optional
  const float* sinks;   // [q_heads]; optional
  const std::int32_t* chosen = nullptr;  // [n, chosen_most]: ChooseTokensArgs::chosen; optional
  std::int64_t chosen_stride = 0, chosen_most = 0;
};
constexpr int kPieceTokens = 128;
constexpr int kMaxLatentKey = 1152;   // maximum width of a key of latent attention
constexpr int kMaxTiledLatent = 512;  // maximum width of a value of latent attention on tensor cores
constexpr int kNarrowRows = 16;
constexpr int wide_rows(int head_dim, bool latent) { return head_dim > 128 || latent ? 32 : 64; }
constexpr int kWgmmaRows = 128;  // number of rows in a wide unit with wgmma
void attention(StreamHandle stream, const AttentionParams& p);

// See ChooseTokensArgs. Queries are processed in chunks whose scores fit into `scores`.
struct ChooseParams {
  Rows q;  // [n, heads, index_dim]
  std::int64_t n, heads;
  std::int64_t q_head;  // in elements, from head to head
  Rows weights;
  KvCache cache;
  std::int64_t sequence_count;
  SequenceTables sequences;
  std::int64_t longest = 0;  // length of the longest sequence
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
// See SampleArgs.
struct SampleParams {
  std::int64_t rows, vocab;
  Rows logits;
  float* raw;  // [rows, vocab]: buffer for the unprocessed logits; may be null if nothing changes the logits
  const DrawRule* rules;
  ListParams history, bias, reported;
  const std::int32_t* history_counts;
  const float* bias_values;
  const std::int32_t* mask;
  std::int64_t mask_stride;
  bool processed;
  std::int32_t *out_id, *out_rank, *out_top_ids;
  float *out_logprob, *out_top_logprobs;
  std::int64_t top_stride;  // in elements, of both `top` arrays
};
void sample(StreamHandle stream, const SampleParams& p);

}  // namespace octavo::cuda
