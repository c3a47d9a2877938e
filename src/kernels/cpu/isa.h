// Table of the functions that are compiled for one instruction set. They are plain functions on plain
// memory.
//
// Each instruction set has a source file (isa_avx2.cc ..), which is compiled for it and fills the table.
// The file may include only this header, similar headers and intrinsics. Otherwise the compiler would
// compile inline functions of other headers for this instruction set, the linker might use these functions
// in the rest of the program, and the program would crash on older processors.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/quant_format.h"
#include "kernels/kinds.h"

namespace octavo::cpu {

// 16-bit and 32-bit formats of activations and of KV caches.
enum class Format : std::uint8_t { f32, bf16, f16 };

// 8-bit formats of KV caches. Numbers are converted to bf16 before products.
enum class Packed : std::uint8_t { e4m3, i8 };

// Format of operand W of the product kernel, and of the matching operand x. A step is one column k, or a
// pair of columns (k, k + 1) for bf16. In each step, lane j of a vector has row j of W.
//
//   f32, f16   one number per lane, times x in f32
//   bf16       a pair per lane, times two numbers of x in f32
//   e4m3, i8   a pair of bytes per lane, converted to bf16 first
//   .._dot     a pair per lane, times a pair of bf16 (dot product instructions)
enum class Operand : std::uint8_t { f32, f16, bf16, e4m3, i8, bf16_dot, e4m3_dot, i8_dot };
constexpr int kOperands = 8;

// Computes c[r][0 .. 2 lanes) (+)= sum over all steps of all segments of x[r] * W. Each element of c has
// one accumulator, and steps are added strictly in order. So the sum depends neither on other rows of the
// tile nor on how the product is split.
struct TileArgs {
  const std::byte* x;          // f32 elements; for .._dot, pairs of bf16
  std::int64_t x_row_stride;   // bytes
  std::int64_t x_unit_stride;  // distance in bytes from one f32 or pair of x to the next
  const std::byte* const* w;   // address of the first vector of each segment
  std::int64_t segments;
  std::int64_t w_offset;  // offset in bytes that is added to the address of every segment
  std::int64_t steps;
  std::int64_t step_stride;    // bytes from step to step
  std::int64_t vector_stride;  // bytes from the first to the second vector of a step
  float* c;
  std::int64_t c_stride;  // floats
  bool accumulate;        // true: add to the contents of c
  // Addresses to prefetch, one per segment, two cache lines in each step; null: no prefetch.
  const std::byte* const* ahead = nullptr;
  std::int64_t ahead_step_stride = 0;
  std::int64_t ahead_vector_stride = 0;  // bytes from the first to the second cache line
  // Another address to prefetch, and bytes to prefetch in each block of steps. Only matrix tiles use it.
  const std::byte* ahead_x = nullptr;
  std::int64_t ahead_x_bytes = 0;
};
using TileFunction = void (*)(const TileArgs&);

// Computes c[r][0 .. 2 lanes) (+)= row r of x times the rows of a panel, over `groups` groups of each
// block.
struct QuantTileArgs {
  const std::byte* x;         // QuantX of the first row and first group
  std::int64_t x_row_stride;  // bytes
  std::int64_t x_shared;      // consecutive groups that share a scale of x
  const std::byte* w;         // first block of the panel
  std::int64_t blocks;
  std::int64_t block_bytes;
  std::int64_t first_group;  // index of the first group in each block
  std::int64_t groups;
  float* c;
  std::int64_t c_stride;  // floats
  bool accumulate;        // true: add to the contents of c
  // Address to prefetch, and bytes to prefetch per group.
  const std::byte* ahead = nullptr;
  std::int64_t ahead_bytes = 0;
};
using QuantTileFunction = void (*)(const QuantTileArgs&);
constexpr int kQuantRows = 6;  // maximum rows of x in a call

struct NormRow {
  NormKind kind;
  float eps;
  const float* weight;
  const float* bias;  // null: no bias
};

struct NormStats {
  float mean;
  float scale;  // 1 / sqrt(var + eps)
};

struct AddNormRow {
  std::int64_t dim;
  float* residual;
  const void* delta;
  Format delta_format;
  float delta_scale;
  NormRow delta_norm;
  float residual_scale = 1;
  NormRow norm;
  bool replace = false;  // AddNormArgs::replace
  void* out;             // null: not written
  Format out_format;
};

struct ActivateRule {
  Activation kind;
  // Parameters of the activation. For swigluoai they are alpha and limit; for xielu they are the factors
  // for positive numbers and for other numbers.
  float alpha;
  float limit;
};

// One head of a query or key, to be read, normalised and rotated.
struct HeadRow {
  const void* x;
  Format format;
  std::int64_t dim;
  NormRow norm;
  NormStats stats;   // statistics of the vector that is normalised, which is the head or the full row
  const float* cos;  // [rotary / 2]; sin has the same size
  const float* sin;
  int rotary;
  bool interleaved;
  float* out;  // output [dim], f32
};

// Converts a row's scores in one piece to probabilities relative to the maximum of the piece. Tokens
// outside [begin, end) get probability 0.
struct SoftmaxRow {
  float* scores;       // [first, last)
  std::int64_t first;  // first and last are multiples of 16
  std::int64_t last;
  std::int64_t begin;
  std::int64_t end;
  float scale;
  float soft_cap;
  float slope;                 // ALiBi slope, divided by the scale of the scores
  std::int64_t query;          // position of the last visible token, whose ALiBi bias is 0
  const float* distance_bias;  // [-furthest, furthest]: bias for each distance to the query; null: no biases
  std::int64_t furthest;
  std::int64_t position;      // position of the query's token
  const float* key_scales;    // [first, last): factor of each token's score; null: no factors
  // [first, last): factor of each token's probability, not included in `sum`; null: no factors
  const float* value_scales;
  void* p;  // output [first, last), f32 or bf16
  Format p_format;
  float maximum;  // output: greatest value of log2(e) * score
  float sum;      // output
};

// State of a row's online softmax: the weighted sum of values relative to 2^maximum, the maximum, and the
// sum of weights.
struct AttentionState {
  float* values;
  float maximum;
  float sum;
};

struct MatrixTiles;

// One token of the gated delta rule (GatedDeltaArgs) or of a scan (ScanArgs), for some columns of the state
// of a head.
struct DeltaStep {
  float* state;         // [keys, columns]
  std::int64_t stride;  // floats from row to row
  std::int64_t keys;
  std::int64_t columns;
  const float* q;  // query [keys]; the key k has the same size
  const float* k;
  const float* v;  // [columns]
  float decay;
  // [keys]: decay of each row of the state; null: all rows have the decay `decay`
  const float* decays = nullptr;
  float beta;
  // true: adds v minus the state's value for k (delta rule); false: adds v (scan), with one decay
  bool corrects;
  float* out;     // [columns]
};

// One token of WKV (WkvArgs), for the state of one head.
struct WkvStep {
  float* state;  // [dim, dim]
  std::int64_t dim;
  const float *r, *k;  // vectors [dim]; the pointers below also point to vectors of this size
  const float* v;
  const float* decays;
  const float* unit;    // key with which the state is read
  const float* erased;  // factor of the value that was read; the product is subtracted from the state
  float* out;
};

// One token of a channel scan (ChannelScanArgs) for some channels. The term of d is not included.
struct ChannelStep {
  float* state;         // [numbers, channels]
  std::int64_t stride;  // floats between rows of the state
  std::int64_t numbers;
  std::int64_t channels;
  const float* rates;  // [numbers, rate_stride]: -exp(a_log)
  std::int64_t rate_stride;
  const float* b;  // [numbers]; c has the same size
  const float* c;
  const float* x;  // [channels]; step has the same size
  const float* step;
  float* out;  // [channels]
};

struct IsaKernels {
  const char* name;
  int lanes;                                           // f32 numbers in a vector
  int tile_rows;                                       // maximum number of rows of x in a call of `tiles`
  const TileFunction* tiles[kOperands];                // [operand][rows - 1]; null: not supported
  const QuantTileFunction (*quant_tiles)[kQuantRows];  // [QuantKind][rows - 1]
  const MatrixTiles* matrix = nullptr;                 // null: not supported

  // Convert x to f32 and back. bias may be null.
  void (*widen)(const void* x, Format format, float* out, std::int64_t n);
  void (*narrow)(const float* x, const float* bias, Format format, void* out, std::int64_t n);
  // Converts 8-bit numbers to bf16. n must be a multiple of 32.
  void (*widen_packed)(const void* x, Packed format, void* bf16, std::int64_t n);
  // Converts n 4-bit codes (kv_codes.h) to signed bytes. Of each 2 * folded codes, byte i has the codes i and
  // i + folded. n must be a multiple of 128, folded 16 or 32.
  void (*unfold)(const void* codes, std::int64_t folded, void* bytes, std::int64_t n);
  // Converts the keys of a group of 16 tokens to a group of values (kv_layout.h). The values are the first
  // n numbers of the keys; n must be a multiple of 16.
  void (*values_of_keys)(const void* keys, Format format, void* values, std::int64_t n);
  void (*quantise)(const void* x, Format format, QuantX* out, std::int64_t n, std::int64_t shared);
  // Computes out += x * scales for `rows` rows of n numbers, with the same scales for each row. The rows of
  // x are contiguous.
  void (*add_scaled)(const float* x, const float* scales, float* out, std::int64_t n, std::int64_t rows,
                     std::int64_t out_stride);
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
  // Adds state `from` to state `into`. The result depends on the order of calls. A state without tokens
  // (sum 0) changes nothing.
  void (*merge)(AttentionState& into, const AttentionState& from, std::int64_t n);
  // Writes values / sum.
  void (*finish)(const AttentionState& state, Format format, void* out, std::int64_t n);
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
