// Divides the attention of one step among thread blocks. It runs on the host and needs no CUDA.
//
// The rows of a sequence that share a KV head (row = query * group + index of the head in its group) are
// split into tiles. Up to kNarrowRows rows, as in decoding, form one narrow tile; more rows form wide
// tiles. A unit processes pieces of kPieceTokens tokens of one tile. Several units may share the pieces of a
// tile if the device then ends earlier; a search finds the number of pieces per unit (FlashInfer, Ye et al.,
// 2024). For a tile of several units, the state of each piece is stored in memory, and a second kernel merges
// the states. The split does not change the result of any piece.
//
// Rows of sequences that begin with the same blocks form narrow tiles over the common pieces, which are then
// read once per tile (shared_prefixes.h). A sequence's own tile has the rest of its pieces.
#pragma once

#include <vector>

#include "kernels/attention_plan.h"
#include "kernels/cuda/kernels.h"
#include "kernels/shared_prefixes.h"

namespace octavo::cuda {

// Returns true if wide tiles use wgmma (attention_wgmma.cu), which only Hopper devices support. Narrow
// tiles always use attention.cu. mma.sync and wgmma give the same bits (instructions_test.cc).
constexpr bool wide_by_wgmma(bool hopper, const KvSpec& kv) {
  return hopper && kv.values_in_keys == 0 && kv.head_dim <= 128 && (kv.dtype == DType::bf16 || kv.dtype == DType::f16);
}

// Returns true if several sequences fit into a narrow tile, and a kernel exists that reads a tile's keys
// once.
bool shares_prefixes(const AttentionLimits& limits);

// Number of thread blocks with narrow tiles that fit on one multiprocessor of Hopper if head_dim is 128. A
// wide tile with wgmma, and any tile of latent attention, needs a full multiprocessor.
constexpr std::int64_t kBlocksPerProcessor = 3;

class AttentionSchedule {
 public:
  // `blocks_at_a_time` is the number of thread blocks that the device runs concurrently; 0: tiles are not
  // split. `states` is the number of piece states for which memory is reserved. `hopper` is true if the
  // device has wgmma.
  AttentionSchedule(const AttentionLimits& limits, std::int64_t blocks_at_a_time, std::int64_t states, bool hopper = false);

  void fill(const AttentionShape& shape);

  // Narrow units come first. In a step that is captured in a CUDA graph, the numbers of units, merges and
  // shared queries depend only on the number of sequences. The last ones may be empty, and units are either
  // all narrow or all wide.
  const std::vector<AttentionUnit>& units() const { return units_; }
  const std::vector<AttentionMerge>& merges() const { return merges_; }
  const std::vector<SharedQuery>& shared_queries() const { return shared_queries_; }
  std::int64_t narrow_units() const { return narrow_units_; }
  bool wide_by_wgmma() const { return wide_by_wgmma_; }
  std::int64_t merge_rows_max() const { return merge_rows_max_; }
  std::int64_t states_used() const { return states_used_; }

  // Maximum numbers of units, merges, shared queries and states that fill() creates.
  std::int64_t most_units() const { return most_units_; }
  std::int64_t most_tiles() const { return most_tiles_; }
  std::int64_t most_shared_queries() const {
    return most_shared_tiles(limits_.max_sequences) * tile_queries();
  }
  std::int64_t most_states() const { return states_; }

 private:
  struct Tile {
    std::int32_t sequence, row_begin, row_end, piece_begin, piece_end;
    bool shared = false;
    std::int32_t rows() const { return row_end - row_begin; }
    std::int32_t pieces() const { return piece_end - piece_begin; }
  };
  struct Cost {
    std::int64_t units, time;
  };
  void check(const AttentionShape& shape) const;
  void share_prefixes(const AttentionShape& shape);
  void share(const AttentionShape& shape, const SharedPrefix& prefix);
  void add_shared_tile(const AttentionShape& shape, std::span<const std::int32_t> sequences,
                       std::int32_t pieces);
  void cut(const AttentionShape& shape);
  Cost cost_of(std::int32_t pieces) const;
  std::int32_t pieces_to_a_unit(std::int64_t most_units) const;
  std::int32_t add_merge(const Tile& tile);
  void add(const Tile& tile, std::int32_t pieces_to_a_unit);
  void pad(std::int64_t sequences);
  std::int64_t rows_of_tiles(std::int64_t rows) const {
    return rows <= kNarrowRows ? kNarrowRows : wide_rows_;
  }
  // Entries in shared_queries_ of a shared tile, with one for each of its kNarrowRows rows.
  std::int64_t tile_queries() const { return (kNarrowRows + group_ - 1) / group_; }
  std::int64_t most_shared_tiles(std::int64_t sequences) const { return shares_ ? sequences / 2 : 0; }

  AttentionLimits limits_;
  bool wide_by_wgmma_, shares_;
  std::int64_t wide_rows_;
  std::int64_t blocks_at_a_time_, most_blocks_, states_;
  std::int64_t most_tiles_ = 0, most_units_ = 0;
  std::int64_t group_;
  SharedPrefixes prefixes_;
  // [sequence]: number of pieces in shared tiles, and index of the merge of its only tile, if there is one
  std::vector<std::int32_t> shared_pieces_, merge_;
  std::vector<Tile> tiles_;
  std::vector<AttentionUnit> units_;
  std::vector<AttentionMerge> merges_;
  std::vector<SharedQuery> shared_queries_;
  std::int64_t narrow_units_ = 0, merge_rows_max_ = 0, states_used_ = 0;
};

}  // namespace octavo::cuda
