// The experts of one layer on the ranks of expert parallelism: assigns tokens to the slots of this rank, and
// moves experts between ranks.
// All replicas of an expert have the same weights, so any of them may compute the expert's output for a
// token. Rank 0 adds up the outputs of a token's experts in the router's order, so the sum does not depend on
// the placement.
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
  std::span<const std::int32_t> own() const { return own(placement_); }

  // Sorts the step's (token, expert) pairs after the router has run (RouteArgs). All views must be in host
  // memory. Each pair gets a row, and rows are sorted by slot. Afterwards `pair_rows` contains row indices.
  // `slots` is i32 [n, chosen].
  // `tokens` is i32 [n * chosen] and receives the token of each row.
  // `order` is a workspace, i32 [n * chosen].
  // `starts` is i32 [slots of this rank + 1] and receives the first row of each slot, counted from 0.
  struct Arranged {
    View pair_rows, tokens, order, starts;
  };
  void arrange(const RouteArgs& routed, const Arranged& out);
  // The same for views in the memory of this backend's device. If the host cannot access it, the views are
  // copied to the host and back, and the call waits for the stream.
  void arrange(Backend& backend, const RouteArgs& routed, const Arranged& out);
  // First row of a rank in the last step. The rank has the rows [first_row(r), first_row(r + 1)).
  std::int64_t first_row(int rank) const { return rank_rows_[static_cast<std::size_t>(rank)]; }
  // Sends each rank's rows to rank 0, which receives act [n * chosen, dim].
  void gather(ProcessGroup& group, const View& rows);

  // Number of tokens of each expert since the caller last set it to 0.
  std::vector<std::int64_t>& loads() { return loads_; }

  // Registers the loaded matrices of this rank. Must be called once. matrices[i] has all matrices of slot i.
  void loaded(std::vector<std::vector<const Weight*>> matrices) { matrices_ = std::move(matrices); }
  // A hash of the format of this rank's slots, or 0 if the slots differ. Experts can move only between ranks
  // with equal formats.
  std::uint64_t format() const;
  std::int64_t slot_bytes() const;  // bytes of one slot's matrices
  // Moves experts to the slots in `next`. All ranks must call it, between two steps. `staging` has the size
  // of all slots of this rank. If the group fails, the weights are undefined.
  void move(const ExpertPlacement& next, ProcessGroup& group, std::span<std::byte> staging);

 private:
  std::span<const std::int32_t> own(const ExpertPlacement& placement) const;
  std::vector<std::span<std::byte>> pieces(std::size_t own_slot) const;

  int rank_, ranks_;
  ExpertPlacement placement_;
  std::vector<std::vector<std::int32_t>> slots_of_;  // slots of each expert, ascending
  std::vector<std::int64_t> loads_;
  std::vector<std::vector<const Weight*>> matrices_;
  // first row of each slot, and of each rank, in the last step
  std::vector<std::int64_t> slot_rows_, rank_rows_;
  std::vector<std::size_t> rank_bytes_;
  std::vector<std::int32_t> on_host_;  // host copies of views that are in a device's memory
};

}  // namespace octavo
