// Functions of one instruction set: a table of plain functions on plain memory.
//
// A separate translation unit per instruction set (isa_avx2.cc ..) fills the table and is compiled for that
// set. It may include only this header, similar ones and intrinsics. An inline function of a shared header
// would be compiled for that set too. The linker could keep that copy for the whole program, which then
// crashes on older processors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/quant_format.h"
#include "kernels/kinds.h"

namespace octavo::cpu {

// Formats of activations and KV caches.
enum class Format : std::uint8_t { f32, bf16, f16 };

// 8-bit formats of KV caches; converted to bf16 before products.
enum class Packed : std::uint8_t { e4m3, i8 };

// Layout of the streamed operand W of the product kernel, and its partner in x. A step is one k, or a pair
// (k, k + 1) of bf16. Lane j of a vector holds row j of W at that step.
//   f32, f16     one number per lane, times x in f32
//   bf16         a pair per lane, times two numbers of x in f32
//   e4m3, i8     a pair of bytes per lane, made bf16 on the way
//   .._dot       a pair per lane, times a pair of bf16 (dot product instructions)
enum class Operand : std::uint8_t { f32, f16, bf16, e4m3, i8, bf16_dot, e4m3_dot, i8_dot };
constexpr int kOperands = 8;

// c[r][0 .. 2 lanes) (+)= sum over all steps of all segments of x[r] * W. Each element of c has one
// accumulator, and steps are strictly in order. So the sum does not depend on other rows of the tile or on
// interruptions.
struct TileArgs {
  const std::byte* x;          // f32, or pairs of bf16 for .._dot
  std::int64_t x_row_stride;   // bytes
  std::int64_t x_unit_stride;  // bytes from one f32 or pair to the next
  const std::byte* const* w;   // the first vector of each segment
  std::int64_t segments;
  std::int64_t w_offset;       // bytes, added to every segment's address
  std::int64_t steps;          // per segment
  std::int64_t step_stride;    // bytes
  std::int64_t vector_stride;  // bytes from the first to the second vector of a step
  float* c;
  std::int64_t c_stride;  // floats
  bool accumulate;        // add to the contents of c
  // Prefetch addresses, if any: one per segment, two lines per step.
  const std::byte* const* ahead = nullptr;
  std::int64_t ahead_step_stride = 0;
  std::int64_t ahead_vector_stride = 0;  // from the first to the second line
};
using TileFunction = void (*)(const TileArgs&);

// c[r][0 .. 2 lanes) (+)= the product of row r of x with the panel's rows, over `groups` groups of each
// block.
struct QuantTileArgs {
  const std::byte* x;         // QuantX of the first row and group
  std::int64_t x_row_stride;  // bytes
  std::int64_t x_shared;      // groups that share a scale of x, from the first on
  const std::byte* w;         // the first block
  std::int64_t blocks;
  std::int64_t block_bytes;
  std::int64_t first_group;  // first group of each block
  std::int64_t groups;
  float* c;
  std::int64_t c_stride;  // floats
  bool accumulate;        // add to the contents of c
  // Prefetch address, and the number of bytes per group.
  const std::byte* ahead = nullptr;
  std::int64_t ahead_bytes = 0;
};
using QuantTileFunction = void (*)(const QuantTileArgs&);
constexpr int kQuantRows = 6;  // maximum rows of x per call

struct NormRow {
  NormKind kind;
  float eps;
  const float* weight;
  const float* bias;  // or nullptr
};

struct NormStats {
  float mean;
  float scale;  // 1 / sqrt(var + eps)
};

struct AddNormRow {
  std::int64_t dim;
  float* residual;
  const void* delta;  // or nullptr
  Format delta_format;
  float delta_scale;
  NormRow delta_norm;
  float residual_scale = 1;
  NormRow norm;
  bool replace = false;  // AddNormArgs
  void* out;             // or nullptr
  Format out_format;
};

struct ActivateRule {
  Activation kind;
  float alpha;  // swigluoai: this and limit; xielu: the factors for positive and for other numbers
  float limit;
};

// One head of a query or key: read, normalised, rotated.
struct HeadRow {
  const void* x;
  Format format;
  std::int64_t dim;
  NormRow norm;
  NormStats stats;   // size of the normalised vector: the head, or the whole row
  const float* cos;  // rotary / 2 of them
  const float* sin;
  int rotary;
  bool interleaved;
  float* out;  // dim, f32
};

// Attention: converts the scores of one row and piece to probabilities relative to the piece's maximum.
// Tokens outside [begin, end) get 0 for any score.
struct SoftmaxRow {
  float* scores;       // [first, last)
  std::int64_t first;  // multiples of 16
  std::int64_t last;
  std::int64_t begin;
  std::int64_t end;
  float scale;
  float soft_cap;
  float slope;                 // ALiBi: increase of scores per token, divided by scale
  std::int64_t query;          // last visible token, where the slope adds 0
  const float* distance_bias;  // [-furthest, furthest]: increase of scores by distance; or nullptr
  std::int64_t furthest;
  std::int64_t position;       // the query's own token
  const float* key_scales;     // per token, [first, last): factor of its score; or nullptr
  const float* value_scales;   // per token: factor of its probability, applied after the sum; or nullptr
  void* p;                    // [first, last), f32 or bf16
  Format p_format;
  float maximum;  // result, of log2(e) * score
  float sum;      // result
};

// Running softmax of a row: weighted values, relative to 2^maximum.
struct AttentionState {
  float* values;
  float maximum;
  float sum;
};

struct MatrixTiles;  // matrix_tiles.h

// One token of the gated delta rule (GatedDeltaArgs) or of a scan (ScanArgs), in columns of a head's state.
struct DeltaStep {
  float* state;         // [keys, columns]
  std::int64_t stride;  // floats from row to row
  std::int64_t keys;
  std::int64_t columns;
  const float* q;  // keys
  const float* k;
  const float* v;  // columns
  float decay;
  const float* decays = nullptr;  // keys: one per row, instead of `decay`
  float beta;
  bool corrects;  // true: v minus the state's value for k is stored; a scan has no such rule, and one decay
  float* out;     // columns
};

// One token of WkvArgs in a head's state.
struct WkvStep {
  float* state;  // [dim, dim]
  std::int64_t dim;
  const float *r, *k;  // each of these: dim
  const float* v;
  const float* decays;
  const float* unit;    // the key that is looked up
  const float* erased;  // factor of the value found, which is subtracted
  float* out;
};

// One token of ChannelScanArgs in some channels, without the term of d.
struct ChannelStep {
  float* state;         // [numbers, channels]
  std::int64_t stride;  // floats from row to row, of the state
  std::int64_t numbers;
  std::int64_t channels;
  const float* rates;  // [numbers, rate_stride]: -exp(a_log)
  std::int64_t rate_stride;
  const float* b;  // numbers
  const float* c;
  const float* x;  // channels
  const float* step;
  float* out;  // channels
};

struct IsaKernels {
  const char* name;
  int lanes;                             // f32 in a vector
  int tile_rows;                         // maximum rows of x per tile call
  const TileFunction* tiles[kOperands];  // [operand][rows - 1]; nullptr if not supported
  const QuantTileFunction (*quant_tiles)[kQuantRows];  // [QuantKind][rows - 1]
  const MatrixTiles* matrix = nullptr;                 // nullptr if not supported

  // x -> f32 and back; bias may be nullptr.
  void (*widen)(const void* x, Format format, float* out, std::int64_t n);
  void (*narrow)(const float* x, const float* bias, Format format, void* out, std::int64_t n);
  void (*widen_packed)(const void* x, Packed format, void* bf16, std::int64_t n);  // n: a multiple of 32
  // Converts a group of 16 tokens' keys, whose first n numbers are the values, to a group of values
  // (kv_layout.h). n: a multiple of 16.
  void (*values_of_keys)(const void* keys, Format format, void* values, std::int64_t n);
  void (*quantise)(const void* x, Format format, QuantX* out, std::int64_t n, std::int64_t shared);
  // out += x * scales
  void (*add_scaled)(const float* x, const float* scales, float* out, std::int64_t n);
  void (*add_norm)(const AddNormRow& row);
  NormStats (*norm_stats)(const void* x, Format format, std::int64_t n, NormKind kind, float eps);
  void (*head)(const HeadRow& row);
  void (*activate)(const void* x, const void* up, Format format, const ActivateRule& rule, void* y,
                   std::int64_t n);
  void (*delta)(const DeltaStep& step);
  void (*channel_step)(const ChannelStep& step);
  void (*wkv)(const WkvStep& step);
  void (*scale_logits)(float* x, float scale, float soft_cap, std::int64_t n);
  void (*softmax)(SoftmaxRow& row);
  // into += from, in the order of calls. A state without tokens (sum 0) changes nothing.
  void (*merge)(AttentionState& into, const AttentionState& from, std::int64_t n);
  void (*finish)(const AttentionState& state, Format format, void* out, std::int64_t n);  // values / sum
};

extern const IsaKernels kAvx2Kernels;
extern const IsaKernels kAvxVnniKernels;
extern const IsaKernels kAvxVnniEvexKernels;
extern const IsaKernels kAvx512Kernels;
extern const IsaKernels kAvx512VnniKernels;
extern const IsaKernels kAvx512Bf16Kernels;
extern const IsaKernels kNeonKernels;
extern const IsaKernels kNeonDotKernels;
extern const IsaKernels kNeonBf16Kernels;

}  // namespace octavo::cpu
