// The experts of one layer, spread over ranks: the experts of this rank, the tokens for its slots, and the
// transfer of weights between ranks.
//
// Any replica of an expert may compute its output for a token, since all have the same weights. Rank 0 adds
// up a token's experts in the router's order, so no sum depends on where experts are.
#pragma once

#include <span>
#include <vector>

#include "dist/process_group.h"
#include "kernels/ops.h"
#include "model/expert_placement.h"
#include "model/spec.h"

namespace octavo {

class ExpertSpread {
 public:
  ExpertSpread(int experts, const Shard& shard);

  const ExpertPlacement& placement() const { return placement_; }
  // Experts in this rank's slots.
  std::span<const std::int32_t> own() const { return own(placement_); }

  // Sorts the pairs (token, expert) of a step in host memory, after the router (RouteArgs). Each pair gets
  // a row; rows are sorted by slot. Afterwards `places` holds rows.
  // tokens  i32 [n * chosen], out: each row's token
  // order   i32 [n * chosen]: workspace
  // starts  i32 [own places + 1], out: first row of each of this rank's slots, counted from 0
  struct Arranged {
    View places, tokens, order, starts;
  };
  void arrange(const RouteArgs& routed, const Arranged& out);
  // First row of a rank in the last step: it has rows [first_row(r), first_row(r + 1)).
  std::int64_t first_row(int rank) const { return rank_rows_[static_cast<std::size_t>(rank)]; }
  // Rank 0 gets all rows, act [n * chosen, dim]; each rank sends its rows.
  void gather(ProcessGroup& group, const View& rows);

  // Number of tokens of each expert since this was last cleared.
  std::vector<std::int64_t>& loads() { return loads_; }

  // Called once, when the matrices of this rank's slots are loaded: matrices[place] are all of one slot's.
  void loaded(std::vector<std::vector<const Weight*>> matrices) { matrices_ = std::move(matrices); }
  // Hash of the format of this rank's slots, or 0 if the slots differ. Experts can move between ranks with
  // equal formats.
  std::uint64_t format() const;
  std::int64_t place_bytes() const;  // bytes of a slot's matrices
  // Called on all ranks, between two steps: moves experts to the slots in `next`, over the group. staging: as
  // large as all own slots. If the group fails, the weights are undefined.
  void move(const ExpertPlacement& next, ProcessGroup& group, std::span<std::byte> staging);

 private:
  std::span<const std::int32_t> own(const ExpertPlacement& placement) const;
  std::vector<std::span<std::byte>> pieces(std::size_t own_place) const;

  int rank_, ranks_;
  ExpertPlacement placement_;
  std::vector<std::vector<std::int32_t>> places_of_;  // each expert's, ascending
  std::vector<std::int64_t> loads_;
  std::vector<std::vector<const Weight*>> matrices_;
  std::vector<std::int64_t> place_rows_, rank_rows_;  // first row of each slot and rank in the step
  std::vector<std::size_t> rank_bytes_;
};

}  // namespace octavo
