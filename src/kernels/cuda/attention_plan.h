// How one step's attention is shared out over blocks. Plain C++, for the host.
//
// The rows of a sequence that share a key head (row = query * group + head in the group) are split into
// tiles: one tile of at most kNarrowRows if they fit, as in decoding; otherwise wide tiles. One unit takes a
// tile through its pieces of kPieceTokens tokens. If the device finishes earlier when pieces are split over
// several units, a search finds the number of pieces per unit (FlashInfer, Ye et al., 2024). Then each
// piece's state goes to memory, and a second kernel merges the states. None of this changes a piece's result.
#pragma once

#include <vector>

#include "kernels/attention_plan.h"
#include "kernels/cuda/kernels.h"

namespace octavo::cuda {

// Whether wide tiles go through wgmma (attention_wgmma.cu), on a device that has it. Narrow ones go through attention.cu, for
// mma.sync and wgmma have the same bits (instructions_test.cc).
constexpr bool wide_by_wgmma(bool hopper, const KvSpec& kv) {
  return hopper && kv.values_in_keys == 0 && kv.head_dim <= 128 && (kv.dtype == DType::bf16 || kv.dtype == DType::f16);
}

// Blocks of narrow tiles that a processor has room for when heads have 128 numbers (Hopper). Wide tiles of wgmma and latent
// attention have a processor for themselves.
constexpr std::int64_t kBlocksPerProcessor = 3;

class AttentionSchedule {
 public:
  // The device runs `blocks_at_a_time` blocks; with 0, tiles are not split. At most `states` states fit into
  // its memory. hopper: the device has wgmma.
  AttentionSchedule(const AttentionLimits& limits, std::int64_t blocks_at_a_time, std::int64_t states, bool hopper = false);

  void fill(const AttentionShape& shape);

  // Units of at most kNarrowRows rows come first. In a recorded step, the numbers of units and merges follow
  // from the number of sequences. Empty ones come last, and units are all narrow or all wide.
  const std::vector<AttentionUnit>& units() const { return units_; }
  const std::vector<AttentionMerge>& merges() const { return merges_; }
  std::int64_t narrow_units() const { return narrow_units_; }
  bool wide_by_wgmma() const { return wide_by_wgmma_; }
  std::int64_t merge_rows_max() const { return merge_rows_max_; }
  std::int64_t states_used() const { return states_used_; }

  // The most units and merges that fill() ever makes.
  std::int64_t most_units() const { return most_units_; }
  std::int64_t most_tiles() const { return most_tiles_; }

 private:
  struct Tile {
    std::int32_t sequence, row_begin, row_end, piece_begin, piece_end;
    std::int32_t pieces() const { return piece_end - piece_begin; }
  };
  void cut(const AttentionShape& shape);
  std::int32_t pieces_to_a_unit() const;
  void add(const Tile& tile, std::int32_t pieces_to_a_unit);
  void pad(std::int64_t sequences);
  std::int64_t rows_of_tiles(std::int64_t rows) const {
    return rows <= kNarrowRows ? kNarrowRows : wide_rows_;
  }

  AttentionLimits limits_;
  bool wide_by_wgmma_;
  std::int64_t wide_rows_;
  std::int64_t blocks_at_a_time_, most_blocks_, states_;
  std::int64_t most_tiles_ = 0, most_units_ = 0;
  std::int64_t group_;
  std::vector<Tile> tiles_;
  std::vector<AttentionUnit> units_;
  std::vector<AttentionMerge> merges_;
  std::int64_t narrow_units_ = 0, merge_rows_max_ = 0, states_used_ = 0;
};

}  // namespace octavo::cuda
