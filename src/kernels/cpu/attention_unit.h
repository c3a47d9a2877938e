// Computes one unit of a step's attention on one thread. The product kernel reads keys and values directly
// from the blocks. Tiles of rows process pieces of keys with an online softmax, as in FlashAttention (Dao
// et al., 2022). Long contexts are split by pieces, as in Flash-Decoding (Dao et al., 2023).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/kv_rotation.h"
#include "kernels/cpu/matrix_tiles.h"
#include "kernels/cpu/scratch_pieces.h"

namespace octavo::cpu {

constexpr std::int64_t kPieceGroups = kPieceTokens / kGroupTokens;
// Stride of a row of scores, in floats: one piece plus one group, because a call of the product kernel may
// write one group after the end of the piece.
constexpr std::int64_t kScoreStride = kPieceTokens + kGroupTokens;
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// Keys and values as operands of products.
struct KvOperand {
  DType dtype;
  KvLayout layout;
  const TileFunction* tiles;
};

// Values that are common to all units of one attention call.
struct AttentionCall {
  const AttentionArgs& args;
  const CpuAttentionPlan& plan;
  const IsaKernels& kernels;
  const KvOperand stored;  // keys and values in the cache's format
  // keys and values after conversion: bf16 for formats of 8 and 4 bits, otherwise equal to `stored`. Keys and
  // values of 4 bits are always converted.
  const KvOperand wide;
  const Format format;
  const bool dot;
  // Matrix tiles for both products, or nullptr for products on vectors. A single row also uses tiles: tiles
  // and vectors add in different orders, and a row's result must not depend on the number of rows.
  const MatrixTiles* matrix;

  // Returns the maximum number of rows of one head in a tile call.
  std::int64_t tile_rows() const { return matrix != nullptr ? 2 * kMatrixRows : kernels.tile_rows; }
  bool packed() const { return stored.layout.element_bytes == 1; }
  bool values_in_keys() const { return args.cache.spec.values_in_keys > 0; }
  std::int64_t dim() const { return args.cache.spec.score_dim(); }
  std::int64_t value_dim() const { return args.cache.spec.value_dim(); }
  // Returns the size in bytes of an element of q and of the probabilities, when they are operands of
  // products.
  std::int64_t x_bytes() const { return dot ? 2 : 4; }
  // Returns the ALiBi slope of the row's head, divided by the scale of the scores.
  float slope(std::int64_t head, std::int64_t row) const {
    if (!args.slopes) return 0;
    return args.slopes.as<float>()[head * plan.group() + row % plan.group()] / args.scale;
  }
  // Returns the biases of the row's head. Index 0 is a key at the position of the row's query.
  const float* distance_bias(std::int64_t head, std::int64_t row) const {
    if (!args.distance_bias) return nullptr;
    return args.distance_bias.row<float>(head * plan.group() + row % plan.group()) + args.distance_bias.size(1) / 2;
  }
  // Returns the index of a row's first element in `view`, which is q or out. `head_dim` is the width of a
  // head in that view.
  std::int64_t element(const View& view, std::int64_t head_dim, std::int64_t head, std::int32_t sequence,
                       std::int64_t row) const {
    return (plan.first_query(sequence) + row / plan.group()) * view.stride[0] +
           (head * plan.group() + row % plan.group()) * head_dim;
  }
  // Adds AttentionArgs::fixed_keys to the state of a row.
  void add_fixed(std::int64_t head, std::int32_t sequence, std::int64_t row, AttentionState& state) const;
  void write(std::int64_t head, std::int32_t sequence, std::int64_t row, AttentionState state) const {
    const View& out = args.out;
    if (args.cache.spec.rotated()) rotate_kv(state.values, value_dim());
    if (args.fixed_keys) add_fixed(head, sequence, row, state);
    if (args.sinks) {
      constexpr float kLog2E = 1.44269504f;
      const float sink = args.sinks.as<float>()[head * plan.group() + row % plan.group()];
      state.sum += std::exp2(sink * kLog2E - state.maximum);
    }
    kernels.finish(state, format,
                   static_cast<std::byte*>(out.data) + element(out, value_dim(), head, sequence, row) *
                                                           static_cast<std::int64_t>(size_of(out.dtype)),
                   value_dim());
  }
};

// Working memory of one unit. The arrays are [head][row].
struct AttentionScratch : ScratchPieces {
  AttentionScratch(const KvSpec& spec, std::byte* memory) : ScratchPieces(memory) {
    const std::int64_t key = padded(spec.head_dim), value = padded(spec.value_dim());
    const bool packed = bits_of(spec.dtype) <= 8;
    const auto element = static_cast<std::int64_t>(size_of(packed ? DType::bf16 : spec.dtype));
    q = take<std::byte>(kAttentionRows * key * 4);
    values = take<float>(kAttentionRows * value);
    piece_values = take<float>(kAttentionRows * value);
    scores = take<float>(kAttentionRows * kScoreStride);
    p = take<std::byte>(kAttentionRows * kScoreStride * 4);
    cleaned = take<std::byte>(kGroupTokens * value * 4);
    if (packed) own_keys = take<std::byte>(kPieceTokens * key * element);
    if (packed || spec.values_in_keys > 0) own_values = take<std::byte>(kPieceTokens * value * element);
    if (packed) key_scales = take<float>(kPieceTokens);
    if (packed) value_scales = take<float>(kPieceTokens);
    if (spec.dtype == DType::i4) unfolded = take<std::byte>(kGroupTokens * std::max(key, value));
  }

  std::byte* q;
  float* values;
  float* piece_values;
  float* scores;
  std::byte* p;
  std::byte* cleaned;
  AttentionState states[kAttentionRows];
  // Keys and values of one head in one piece, after 8-bit numbers are converted to bf16 or values are
  // extracted from keys; and their scales.
  std::byte* own_keys = nullptr;
  std::byte* own_values = nullptr;
  float* key_scales = nullptr;
  float* value_scales = nullptr;
  std::byte* unfolded = nullptr;  // a group of keys or values as signed bytes

 private:
  // Returns the width of a value, rounded up to two vectors, because a tile writes two vectors.
  static std::int64_t padded(std::int64_t dim) { return (dim + 31) / 32 * 32; }
};

class AttentionUnitRun {
 public:
  AttentionUnitRun(const AttentionCall& call, const AttentionUnit& unit, AttentionScratch& scratch);
  void run();

 private:
  struct Row {
    std::int32_t sequence;
    std::int32_t row;
    std::int32_t merge;
    std::int64_t position;
    std::int64_t begin;  // the row sees the tokens [begin, end)
    std::int64_t end;
  };
  // Groups [begin, end) of a piece. Every row sees the groups [whole_begin, whole_end) completely.
  struct Groups {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t whole_begin;
    std::int64_t whole_end;
    bool whole(std::int64_t g) const { return g >= whole_begin && g < whole_end; }
  };
  // Rows [row_begin, row_end) of heads [head_begin, head_end). There is one tile per head.
  struct Tiles {
    std::int64_t head_begin;
    std::int64_t head_end;
    std::int64_t row_begin;
    std::int64_t row_end;
    std::int64_t rows() const { return row_end - row_begin; }
  };

  void load_queries();
  void attend(std::int64_t piece, const Tiles& tiles);
  Groups visible(std::int64_t piece, const Tiles& tiles) const;
  void locate(std::int64_t piece, const Groups& groups);
  const std::byte* rotated_query(const std::byte* q) const;  // for caches with KvSpec::rotated()
  void prepare(std::int64_t piece, std::int64_t head);
  void widen(const std::byte* from, std::int64_t folded, std::byte* to, std::int64_t numbers) const;
  void load_scales(const Groups& groups, std::int64_t head);
  TileFunction score_function(std::int64_t rows);
  TileFunction mix_function(std::int64_t rows);
  void score(const Tiles& tiles, const Groups& groups, std::int64_t head, std::int64_t group);
  void leave_chosen(std::int64_t piece, const Groups& groups, std::int64_t head, std::int64_t row);
  void softmax(std::int64_t piece, const Groups& groups, std::int64_t head, std::int64_t row);
  void mix(const Tiles& tiles, const Groups& groups, std::int64_t head, std::int64_t begin, std::int64_t end);
  void mix_clean(std::int64_t piece, const Groups& groups, std::int64_t head, std::int64_t row);
  bool finite(std::int64_t head, const Groups& groups) const;
  const std::byte* clean(std::int64_t head, std::int64_t group, std::int64_t begin, std::int64_t end);
  void keep(std::int64_t piece, std::int64_t head, std::int64_t row);

  const std::byte* keys(std::int64_t head, std::int64_t g) const {
    if (widened_) return scratch_.own_keys + g * kv_.layout.key_group_bytes;
    return blocks_[g] + kv_.layout.keys(head, in_block_[g]);
  }
  const std::byte* values(std::int64_t head, std::int64_t g) const {
    if (own_values_) return scratch_.own_values + g * kv_.layout.value_group_bytes;
    return blocks_[g] + kv_.layout.values(head, in_block_[g]);
  }
  // Returns the index of a row of a head in the scratch arrays.
  std::int64_t at(std::int64_t head, std::int64_t row) const {
    return (head - unit_.head_begin) * rows_ + row;
  }
  // Returns the bytes from one row of q to the next. Matrix tiles read whole blocks, so a row is padded to
  // whole blocks.
  std::int64_t q_stride() const {
    constexpr std::int64_t kBlock = 2 * kMatrixSteps;
    const std::int64_t dim =
        call_.matrix != nullptr ? (call_.dim() + kBlock - 1) / kBlock * kBlock : call_.dim();
    return dim * call_.x_bytes();
  }
  std::int64_t c_stride() const {
    const std::int64_t width = 2 * call_.kernels.lanes;
    return (kv_.layout.padded_dim + width - 1) / width * width;
  }
  std::int64_t vector_bytes() const {
    return call_.kernels.lanes * kv_.layout.unit * kv_.layout.element_bytes;
  }
  // Returns the number of groups that fit into the two vectors of a tile.
  std::int64_t groups_at_once() const {
    return std::max<std::int64_t>(1, 2 * call_.kernels.lanes / kGroupTokens);
  }
  // Returns the number of groups of a head that are processed before the next head. This is one block, so
  // that memory is read in order, but at least `least` groups.
  std::int64_t run_groups(const Tiles& tiles, std::int64_t least) const {
    if (tiles.head_end - tiles.head_begin == 1) return kPieceGroups;
    return std::clamp(kv_.layout.groups, least, kPieceGroups);
  }

  const AttentionCall& call_;
  const AttentionUnit& unit_;
  AttentionScratch& scratch_;
  const std::int64_t rows_;  // number of rows per head
  MatrixTilesInUse in_use_;
  // True if numbers of 8 or 4 bits are converted to bf16 before the product. With few rows and no matrix
  // tiles, the product kernel converts numbers of 8 bits.
  const bool widened_;
  const bool own_values_;  // true: values are converted, or extracted from keys, into a buffer
  const KvOperand& kv_;
  Row row_[kAttentionRows];
  SoftmaxRow results_[kAttentionRows];
  // Block of each group of the current piece, and the index of the group in the block.
  const std::byte* blocks_[kPieceGroups];
  std::int64_t in_block_[kPieceGroups];
};

}  // namespace octavo::cpu
