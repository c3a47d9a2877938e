// What the CPU backend needs from one instruction set: a table of plain functions on plain memory.
//
// The table is filled once per instruction set, in a translation unit of its own (isa_avx2.cc ..) that is
// compiled for it. Such a unit includes this header, its like and intrinsics only: an inline function of a
// shared header, compiled there, could be the copy that the linker keeps for everybody, and then crash on a
// lesser processor.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cpu/quant_format.h"
#include "kernels/kinds.h"

namespace octavo::cpu {

// Formats of activations and KV caches.
enum class Format : std::uint8_t { f32, bf16, f16 };

// 8-bit formats of KV caches, which become bf16 before they are multiplied.
enum class Packed : std::uint8_t { e4m3, i8 };

// How the streamed operand W of the product kernel lies in memory, and what it meets. A step is one k, or a
// pair (k, k + 1) of bf16; lane j of a vector holds row j of W at that step.
//   f32, f16     one number per lane, times x in f32
//   bf16         a pair per lane, times two numbers of x in f32
//   e4m3, i8     a pair of bytes per lane, made bf16 on the way
//   .._dot       a pair per lane, times a pair of bf16 (dot product instructions)
enum class Operand : std::uint8_t { f32, f16, bf16, e4m3, i8, bf16_dot, e4m3_dot, i8_dot };
constexpr int kOperands = 8;

// c[r][0 .. 2 lanes) (+)= sum over all steps of all segments of x[r] * W, one accumulator for each element of
// c and steps strictly in order: the sum is the same whatever rows share the tile and wherever it was
// interrupted.
struct TileArgs {
  const std::byte* x;          // f32, or pairs of bf16 for .._dot
  std::int64_t x_row_stride;   // bytes
  std::int64_t x_unit_stride;  // bytes from one f32 or pair to the next
  const std::byte* const* w;   // the first vector of each segment
  std::int64_t segments;
  std::int64_t w_offset;       // bytes, added to every segment's address
  std::int64_t steps;          // of a segment
  std::int64_t step_stride;    // bytes
  std::int64_t vector_stride;  // bytes from the first to the second vector of a step
  float* c;
  std::int64_t c_stride;  // floats
  bool accumulate;        // go on from what c holds
  // For each segment, what is wanted soon and fetched meanwhile, two lines a step; nullptr: nothing.
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
  std::int64_t first_group;  // of each block
  std::int64_t groups;
  float* c;
  std::int64_t c_stride;  // floats
  bool accumulate;        // go on from what c holds
  // What is wanted soon and fetched meanwhile, so many bytes a group.
  const std::byte* ahead = nullptr;
  std::int64_t ahead_bytes = 0;
};
using QuantTileFunction = void (*)(const QuantTileArgs&);
constexpr int kQuantRows = 6;  // most rows of x that one call takes

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
  float alpha;  // this and limit: of swigluoai; of xielu the factors for numbers above 0 and below
  float limit;
};

// One head of a query or key: read, normalised, turned.
struct HeadRow {
  const void* x;
  Format format;
  std::int64_t dim;
  NormRow norm;
  NormStats stats;   // of the vector that is normalised: the head, or the whole row
  const float* cos;  // rotary / 2 of them
  const float* sin;
  int rotary;
  bool interleaved;
  float* out;  // dim, f32
};

// Attention: scores of one row and piece become probabilities relative to the piece's maximum. Tokens outside
// [begin, end) get 0 whatever their score.
struct SoftmaxRow {
  float* scores;       // [first, last)
  std::int64_t first;  // multiples of 16
  std::int64_t last;
  std::int64_t begin;
  std::int64_t end;
  float scale;
  float soft_cap;
  float slope;                 // what scores grow by from token to token, divided by scale
  std::int64_t query;          // the last token that is seen, at which the slope leaves them as they are
  const float* distance_bias;  // [-furthest, furthest]: what they grow by so far from `position`; or nullptr
  std::int64_t furthest;
  std::int64_t position;       // the query's own token
  const float* key_scales;     // of each token, [first, last): its score is multiplied by it; or nullptr
  const float* value_scales;   // likewise: its probability, after the sum; or nullptr
  void* p;                    // [first, last), f32 or bf16
  Format p_format;
  float maximum;  // result, of log2(e) * score
  float sum;      // result
};

// A row's running softmax: values already weighted, relative to 2^maximum.
struct AttentionState {
  float* values;
  float maximum;
  float sum;
};

struct MatrixTiles;  // matrix_tiles.h

// One token of the gated delta rule (GatedDeltaArgs), or of a scan (ScanArgs), in columns of a head's state.
struct DeltaStep {
  float* state;         // [keys, columns]
  std::int64_t stride;  // floats from row to row
  std::int64_t keys;
  std::int64_t columns;
  const float* q;  // keys
  const float* k;
  const float* v;  // columns
  float decay;
  const float* decays = nullptr;  // keys: one for each row, in place of `decay`
  float beta;
  bool corrects;  // of v is taken what the state holds for k; a scan does not, and has one decay
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
  const float* erased;  // what is taken away of what was found
  float* out;
};

// One token of ChannelScanArgs in some channels; without the share of d.
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
  int tile_rows;                         // most rows of x that one tile call takes
  const TileFunction* tiles[kOperands];  // [operand][rows - 1]; nullptr without the instructions
  const QuantTileFunction (*quant_tiles)[kQuantRows];  // [QuantKind][rows - 1]
  const MatrixTiles* matrix = nullptr;                 // nullptr without the instructions

  // x -> f32 and back; bias may be nullptr.
  void (*widen)(const void* x, Format format, float* out, std::int64_t n);
  void (*narrow)(const float* x, const float* bias, Format format, void* out, std::int64_t n);
  void (*widen_packed)(const void* x, Packed format, void* bf16, std::int64_t n);  // n: a multiple of 32
  // A group of 16 tokens' keys in a cache, of which the first n numbers of each are its values, as a group of
  // values (kv_layout.h); n: a multiple of 16.
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
