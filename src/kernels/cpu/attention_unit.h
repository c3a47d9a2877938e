// One unit of a step's attention, on one thread: blocks of keys and values are operands of the product
// kernel where they lie, so nothing is gathered. Tiles of rows over pieces of keys with a running softmax, as
// in FlashAttention (Dao et al., 2022); long contexts are shared out by pieces as in Flash-Decoding (Dao et
// al., 2023).
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cpu/attention_plan.h"
#include "kernels/cpu/isa.h"

namespace octavo::cpu {

constexpr std::int64_t kPieceGroups = kPieceTokens / kGroupTokens;
constexpr std::int64_t kScoreStride = kPieceTokens + kGroupTokens;  // a tile call may write a group too many
constexpr float kNoScore = -std::numeric_limits<float>::infinity();

// Keys and values as the tiles meet them.
struct KvOperand {
  DType dtype;
  KvLayout layout;
  const TileFunction* tiles;
};

// What is the same for all units of a call.
struct AttentionCall {
  const AttentionArgs& args;
  const CpuAttentionPlan& plan;
  const IsaKernels& kernels;
  const KvOperand stored;  // as blocks lie in memory
  const KvOperand wide;    // the bf16 that 8-bit formats become; else the same
  const Format format;     // of q and out
  const bool dot;

  bool packed() const { return stored.layout.element_bytes == 1; }
  std::int64_t dim() const { return args.cache.spec.head_dim; }
  std::int64_t x_bytes() const { return dot ? 2 : 4; }  // of q and probabilities as the tiles want them
  // Elements (of `bytes` each) from the begin of q or out to those of a row.
  std::int64_t element(const View& view, std::int64_t head, std::int32_t sequence, std::int64_t row) const {
    return (plan.first_query(sequence) + row / plan.group()) * view.stride[0] +
           (head * plan.group() + row % plan.group()) * dim();
  }
  void write(std::int64_t head, std::int32_t sequence, std::int64_t row, AttentionState state) const {
    const View& out = args.out;
    if (args.sinks) {
      constexpr float kLog2E = 1.44269504f;
      const float sink = args.sinks.as<float>()[head * plan.group() + row % plan.group()];
      state.sum += std::exp2(sink * kLog2E - state.maximum);
    }
    kernels.finish(state, format,
                   static_cast<std::byte*>(out.data) +
                       element(out, head, sequence, row) * static_cast<std::int64_t>(size_of(out.dtype)),
                   dim());
  }
};

// Working memory of one unit. Rows are [head][row].
struct AttentionScratch {
  alignas(64) std::byte q[kAttentionRows * kMaxHeadDim * 4];
  alignas(64) float values[kAttentionRows * kMaxHeadDim];
  alignas(64) float piece_values[kAttentionRows * kMaxHeadDim];
  alignas(64) float scores[kAttentionRows * kScoreStride];
  alignas(64) std::byte p[kAttentionRows * kScoreStride * 4];
  alignas(64) std::byte cleaned[kGroupTokens * kMaxHeadDim * 4];
  AttentionState states[kAttentionRows];
  // An 8-bit piece of one head, widened; and the scales of one.
  alignas(64) std::byte wide_keys[kPieceTokens * kMaxHeadDim * 2];
  alignas(64) std::byte wide_values[kPieceTokens * kMaxHeadDim * 2];
  alignas(64) float key_scales[kPieceTokens];
  alignas(64) float value_scales[kPieceTokens];
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
    std::int64_t begin;  // tokens that it sees: [begin, end)
    std::int64_t end;
  };
  // Groups [begin, end) of a piece, and those among them that every row sees whole.
  struct Groups {
    std::int64_t begin;
    std::int64_t end;
    std::int64_t whole_begin;
    std::int64_t whole_end;
    bool whole(std::int64_t g) const { return g >= whole_begin && g < whole_end; }
  };
  // Rows [row_begin, row_end) of heads [head_begin, head_end): a tile for each head.
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
  void widen(std::int64_t piece, std::int64_t head);
  void load_scales(const Groups& groups, std::int64_t head);
  void score(const Tiles& tiles, const Groups& groups, std::int64_t head, std::int64_t group);
  void softmax(std::int64_t piece, const Groups& groups, std::int64_t head, std::int64_t row);
  void mix(const Tiles& tiles, const Groups& groups, std::int64_t head, std::int64_t begin, std::int64_t end);
  void mix_clean(std::int64_t piece, const Groups& groups, std::int64_t head, std::int64_t row);
  bool finite(std::int64_t head, const Groups& groups) const;
  const std::byte* clean(std::int64_t head, std::int64_t group, std::int64_t begin, std::int64_t end);
  void keep(std::int64_t piece, std::int64_t head, std::int64_t row);

  const std::byte* keys(std::int64_t head, std::int64_t g) const {
    if (widened_) return scratch_.wide_keys + g * kv_.layout.key_group_bytes;
    return blocks_[g] + kv_.layout.keys(head, in_block_[g]);
  }
  const std::byte* values(std::int64_t head, std::int64_t g) const {
    if (widened_) return scratch_.wide_values + g * kv_.layout.value_group_bytes;
    return blocks_[g] + kv_.layout.values(head, in_block_[g]);
  }
  // Where a row of a head lies in the scratch arrays.
  std::int64_t at(std::int64_t head, std::int64_t row) const {
    return (head - unit_.head_begin) * rows_ + row;
  }
  std::int64_t q_stride() const { return call_.dim() * call_.x_bytes(); }
  std::int64_t c_stride() const {
    const std::int64_t width = 2 * call_.kernels.lanes;
    return (kv_.layout.padded_dim + width - 1) / width * width;
  }
  std::int64_t vector_bytes() const {
    return call_.kernels.lanes * kv_.layout.unit * kv_.layout.element_bytes;
  }
  // Groups that a tile's two vectors hold.
  std::int64_t groups_at_once() const {
    return std::max<std::int64_t>(1, 2 * call_.kernels.lanes / kGroupTokens);
  }
  // Groups of a head that are met before it is the next head's turn, `least` at least: a block's, so that
  // memory is read in the order in which it lies.
  std::int64_t run_groups(const Tiles& tiles, std::int64_t least) const {
    if (tiles.head_end - tiles.head_begin == 1) return kPieceGroups;
    return std::clamp(kv_.layout.groups, least, kPieceGroups);
  }

  const AttentionCall& call_;
  const AttentionUnit& unit_;
  AttentionScratch& scratch_;
  const std::int64_t rows_;  // of a head
  // Many rows meet 8-bit numbers that were made bf16 once; few, numbers that become so on the way.
  const bool widened_;
  const KvOperand& kv_;
  Row row_[kAttentionRows];
  SoftmaxRow results_[kAttentionRows];
  // Of the piece at hand: each group's block, and which group of the block it is.
  const std::byte* blocks_[kPieceGroups];
  std::int64_t in_block_[kPieceGroups];
};

}  // namespace octavo::cpu
