// How one step's attention is shared out.
//
// A row is one query of one head; the rows of a sequence that share a key head are flat: row = query * group
// + head in the group. Keys are looked at in pieces of kPieceTokens at absolute multiples, each piece's
// result merged into the row's state in order. So a row is computed alike whoever its neighbours are and
// whether its pieces were done by one thread or many.
#pragma once

#include <vector>

#include "kernels/cpu/kv_layout.h"
#include "kernels/ops.h"

namespace octavo::cpu {

constexpr std::int64_t kPieceTokens = 256;
constexpr std::int64_t kAttentionRows = 96;  // most rows of a tile

// Rows [row_begin, row_end) of a sequence over pieces [piece_begin, piece_end), for each key head.
struct AttentionUnit {
  std::int32_t sequence;
  std::int32_t row_begin;
  std::int32_t row_end;
  std::int32_t piece_begin;
  std::int32_t piece_end;
  std::int32_t
      merge;  // index of the merge that awaits the pieces' states; -1: they go straight to the output
};

// Rows whose pieces were shared out, and where their states are: [kv_heads][rows][pieces] from `first_state`
// on.
struct AttentionMerge {
  std::int32_t sequence;
  std::int32_t row_begin;
  std::int32_t row_end;
  std::int32_t pieces;
  std::int64_t first_state;

  std::int64_t state(std::int64_t head, std::int64_t row, std::int64_t piece) const {
    return first_state + (head * (row_end - row_begin) + row - row_begin) * pieces + piece;
  }
};

class CpuAttentionPlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<CpuAttentionPlan>> make(const AttentionLimits& limits, int threads,
                                                        int tile_rows);
  void fill(const AttentionShape& shape);

  std::span<const AttentionUnit> units() const { return units_; }
  std::span<const AttentionMerge> merges() const { return merges_; }
  std::int64_t group() const { return group_; }  // query heads to a key head
  std::int64_t length(std::int32_t sequence) const { return lengths_[index(sequence)]; }
  std::int64_t first_query(std::int32_t sequence) const { return starts_[index(sequence)]; }
  // Where in its sequence the row's query stands.
  std::int64_t position(std::int32_t sequence, std::int64_t row) const {
    const std::int64_t queries = starts_[index(sequence) + 1] - starts_[index(sequence)];
    return length(sequence) - queries + row / group_;
  }
  std::int32_t block(std::int32_t sequence, std::int64_t i) const {
    return tables_[static_cast<std::size_t>(table_begins_[index(sequence)] + i)];
  }
  // A partial state: padded_dim values, the maximum, the sum.
  float* state(std::int64_t i) const { return static_cast<float*>(states_.data()) + i * state_floats_; }

 private:
  CpuAttentionPlan(const AttentionLimits& limits, int threads, int tile_rows);
  static std::size_t index(std::int32_t sequence) { return static_cast<std::size_t>(sequence); }
  std::int64_t tiles_of(std::int64_t rows) const { return (rows + tile_rows_ - 1) / tile_rows_; }
  template <class Visit>
  void for_row_blocks(Visit&& visit) const;
  void share_out(std::int32_t sequence, std::int32_t row_begin, std::int32_t row_end,
                 std::int64_t cost_wanted);

  AttentionLimits limits_;
  int threads_;
  int tile_rows_;
  std::int64_t group_;
  std::int64_t state_floats_;
  std::int64_t state_count_;
  std::int64_t states_used_ = 0;
  Buffer states_;
  std::vector<std::int32_t> starts_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int32_t> tables_;
  std::vector<std::int64_t> table_begins_;
  std::vector<AttentionUnit> units_;
  std::vector<AttentionMerge> merges_;
};

}  // namespace octavo::cpu
