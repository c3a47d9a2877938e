// Splits the attention of one step into units of work for the threads of the CPU backend.
//
// A row is one query of one head. The rows of a sequence that share a KV head are numbered: row = query *
// group + index of the head in its group. Keys are processed in pieces of kPieceTokens tokens, aligned to
// multiples of kPieceTokens. The results of the pieces are merged into the row's state in order. So the
// result of a row does not depend on other rows, on the number of threads, or on prefix sharing.
//
// If several sequences begin with the same blocks, the rows of these sequences form one tile over the
// common pieces, and the prefix is read only once per step (shared_prefixes.h).
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/cpu/kv_layout.h"
#include "kernels/ops.h"
#include "kernels/shared_prefixes.h"

namespace octavo::cpu {

constexpr std::int64_t kPieceTokens = 256;
constexpr std::int64_t kAttentionRows = 96;  // maximum number of rows in a unit, over all its heads

// Rows of one sequence.
struct AttentionPart {
  std::int32_t sequence;
  std::int32_t row_begin;
  std::int32_t row_end;
  // Index of the AttentionMerge for the partial states; -1: the output is written directly.
  std::int32_t merge;

  std::int32_t rows() const { return row_end - row_begin; }
};

// Rows of all KV heads that see the same keys. A job is split into units.
struct AttentionJob {
  std::int32_t part_begin;
  std::int32_t part_end;
  std::int32_t rows;  // number of rows of all parts, for each KV head
  std::int32_t piece_begin;
  std::int32_t piece_end;
};

// Work item of one thread: the rows of a job, for some of its heads and pieces.
struct AttentionUnit {
  std::int32_t part_begin;
  std::int32_t part_end;
  std::int32_t head_begin;
  std::int32_t head_end;
  std::int32_t piece_begin;
  std::int32_t piece_end;
};

// Rows whose pieces are computed by several units. The partial states [kv_heads][rows][pieces] begin at
// `first_state`.
struct AttentionMerge {
  std::int32_t sequence;
  std::int32_t row_begin;
  std::int32_t row_end;
  std::int32_t piece_begin;
  std::int32_t piece_end;
  std::int64_t first_state;

  std::int64_t state(std::int64_t head, std::int64_t row, std::int64_t piece) const {
    return first_state + (head * (row_end - row_begin) + row - row_begin) * (piece_end - piece_begin) +
           piece - piece_begin;
  }
};

class CpuAttentionPlan final : public AttentionPlan {
 public:
  static Result<std::unique_ptr<CpuAttentionPlan>> make(const AttentionLimits& limits, int threads,
                                                        int tile_rows);
  void fill(const AttentionShape& shape);

  std::span<const AttentionUnit> units() const { return units_; }
  std::span<const AttentionPart> parts(const AttentionUnit& unit) const {
    return std::span(parts_).subspan(index(unit.part_begin), index(unit.part_end - unit.part_begin));
  }
  std::span<const AttentionMerge> merges() const { return merges_; }
  std::int64_t group() const { return group_; }  // query heads per KV head
  int window() const { return limits_.window; }
  std::int64_t length(std::int32_t sequence) const { return lengths_[index(sequence)]; }
  std::int64_t first_query(std::int32_t sequence) const { return starts_[index(sequence)]; }
  std::int64_t queries() const { return starts_.back(); }  // queries of all sequences
  std::int32_t sequence_of(std::int64_t query) const {
    return static_cast<std::int32_t>(std::ranges::upper_bound(starts_, query) - starts_.begin()) - 1;
  }
  int most_tokens() const { return limits_.max_length; }
  bool causal() const { return limits_.causal; }
  std::int64_t position(std::int32_t sequence, std::int64_t row) const {
    return length(sequence) - queries(sequence) + row / group_;
  }
  // Returns the end of the tokens that the row sees. `window` is the sliding window in tokens; 0: no
  // window.
  std::int64_t seen_end(std::int32_t sequence, std::int64_t row, int window) const {
    const std::int64_t at = position(sequence, row);
    if (causal()) return at + 1;
    return window > 0 ? std::min(length(sequence), at + window) : length(sequence);
  }
  std::int32_t block(std::int32_t sequence, std::int64_t i) const { return table(sequence)[i]; }
  // Returns partial state i: padded_dim values, then the maximum, then the sum.
  float* state(std::int64_t i) const { return static_cast<float*>(states_.data()) + i * state_floats_; }

 private:
  CpuAttentionPlan(const AttentionLimits& limits, int threads, int tile_rows);
  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::int64_t queries(std::int32_t sequence) const {
    return starts_[index(sequence) + 1] - starts_[index(sequence)];
  }
  const std::int32_t* table(std::int32_t sequence) const {
    return tables_.data() + table_begins_[index(sequence)];
  }
  std::int64_t tiles_of(std::int64_t rows) const { return (rows + tile_rows_ - 1) / tile_rows_; }
  std::int64_t cost(const AttentionJob& job) const;
  // first_piece() returns the first piece in which the row sees a token; past_piece() returns the index
  // after the last such piece.
  std::int32_t first_piece(std::int32_t sequence, std::int64_t row) const;
  std::int32_t past_piece(std::int32_t sequence, std::int64_t row) const;
  void copy(const AttentionShape& shape);
  std::int32_t add_merge(std::int32_t sequence, std::int64_t row_begin, std::int64_t row_end);

  // Returns the blocks that all queries of a sequence see completely; none if the sequence has too many
  // queries to share a prefix.
  std::span<const std::int32_t> shareable_blocks(std::int32_t sequence) const;
  void share_prefixes();
  bool add_merges(std::span<const std::int32_t> sequences);
  void share(const SharedPrefix& prefix);

  void add_own_jobs(std::int32_t sequence);
  void cut(const AttentionJob& job, std::int64_t cost_wanted);

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
  SharedPrefixes prefixes_;
  // [sequence]: number of pieces that are computed together with other sequences
  std::vector<std::int32_t> shared_;
  std::vector<std::int32_t> merge_;  // [sequence]: index of the sequence's merge, if it shares a prefix
  std::vector<AttentionPart> parts_;
  std::vector<AttentionJob> jobs_;
  std::vector<AttentionUnit> units_;
  std::vector<AttentionMerge> merges_;
};

}  // namespace octavo::cpu
