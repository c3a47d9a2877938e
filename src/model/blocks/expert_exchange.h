// Experts that several engines share (data parallel). Each engine has separate tokens. In a layer with
// experts, every rank gets the rows of all engines' tokens, computes its experts for them, and returns the
// outputs to the engine of the token. So an engine's outputs have the same bits as without other engines.
//
// The engines run in lock step: in a step, all ranks of all engines call the same operations. An engine
// without tokens assists the others (Decoder::assist).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "dist/process_group.h"
#include "kernels/ops.h"
#include "model/spec.h"

namespace octavo {

class ExpertSpread;

class ExpertExchange {
 public:
  // group: all ranks, by Shard::expert_rank(). It outlives the exchange.
  ExpertExchange(ProcessGroup& group, const Shard& shard, DType activation);

  // Begins a step with n tokens of this engine, 0 to assist. Errors: unavailable, a rank is dead or has left.
  Result<> begin(std::int64_t n);
  // Leaves the other ranks; all ranks of an engine call it. The others learn it in their next begin().
  void leave();
  // This or another rank has left: no step is possible.
  bool left() const { return left_; }

  DType activation() const { return activation_; }
  // Tokens of the step: of all engines, and of the engine with the most.
  std::int64_t tokens() const { return first_token_.back(); }
  std::int64_t most_tokens() const { return most_tokens_; }

  // The operations of a layer, in this order. A failed group leaves the outputs undefined.
  //
  // Gathers the rows and the routing of all engines. x: act [n, dim]; own: its routing; everyone: act
  // [tokens(), dim], out. False: the group has failed.
  bool share(const View& x, const RouteArgs& own, std::int64_t chosen, const View& everyone);
  // The pairs (token, expert) of all engines, for ExpertSpread::arrange().
  RouteArgs routed() const;
  // Finds the engine of each row of ExpertSpread::arrange(), and changes `places` of this engine's tokens
  // into rows of `own` in give_back().
  struct Arranged {
    View places, tokens, order;
  };
  void divide(const ExpertSpread& spread, const Arranged& arranged);
  // Returns this rank's rows, act [rows, dim], to their engines. sent: act [most_tokens() * chosen, dim],
  // workspace. own: act [n * chosen, dim], out on the engine's first rank.
  void give_back(const View& rows, const View& sent, const View& own);

 private:
  template <class Offset>
  void gather_of_engines(std::span<std::byte> all, const Offset& offset);
  std::size_t first_route(std::size_t engine) const;
  std::size_t engine_of(std::int32_t token) const;

  ProcessGroup& group_;
  const std::size_t ranks_of_engine_, engines_, engine_;
  const int rank_;
  const DType activation_;
  bool left_ = false;

  // Sizes of the step.
  std::vector<std::int64_t> first_token_;  // of each engine; then the number of all tokens
  std::int64_t most_tokens_ = 0;

  // Pairs and rows of the layer.
  std::size_t chosen_ = 0, heads_ = 0;  // experts of a token; starts in a routing
  std::vector<std::int32_t> routes_;    // each engine's: starts, then the token of each pair
  std::vector<std::int32_t> starts_;    // all engines' pairs, by expert
  std::vector<std::int32_t> pair_tokens_;
  std::vector<std::int32_t> own_pairs_;      // index in pair_tokens_ of each of this engine's pairs
  std::vector<std::int32_t> row_of_engine_;  // of each row: its index among its engine's rows
  std::vector<std::vector<std::int64_t>>
      first_rows_;  // [engine][rank]: first of the rank's rows of the engine
  std::vector<std::size_t> offsets_;
  std::int64_t first_row_ = 0;  // of this rank
  std::span<const std::int32_t> row_tokens_;
};

}  // namespace octavo
