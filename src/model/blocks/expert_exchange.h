// Shares a layer's experts between several engines (data parallelism with expert parallelism). Each engine
// has its own tokens. In a layer with experts, every rank receives the rows of all engines' tokens, computes
// its experts for them, and returns the outputs to the tokens' engines. An engine's outputs are bit-identical
// to those of an engine that runs alone.
// All engines run in lock step: in each step, all ranks of all engines call the same functions. An engine
// without tokens calls Decoder::assist() instead of a forward pass.
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
  // `group` contains all ranks of all engines, in the order of Shard::expert_rank(). It must outlive the
  // exchange.
  ExpertExchange(ProcessGroup& group, const Shard& shard, DType activation);

  // Begins a step with n tokens of this engine. n is 0 if the engine only assists. Returns unavailable if a
  // rank is dead, or if n > 0 and a rank has left.
  Result<> begin(std::int64_t n);
  // Leaves the group. All ranks of an engine must call it. Ranks of the remaining engines detect it in their
  // next begin().
  void leave();
  // Whether any rank has left, including this one. Then no further step is possible.
  bool left() const { return left_; }

  DType activation() const { return activation_; }
  // Number of tokens in the step: tokens() is the sum over engines, most_tokens() the maximum.
  std::int64_t tokens() const { return first_token_.back(); }
  std::int64_t most_tokens() const { return most_tokens_; }

  // The next functions must be called in this order for each layer. If the group fails, the outputs are
  // undefined.

  // Gathers the rows and the routing of all engines. `x`, act [n, dim], and `own` are the rows and the
  // routing of this engine. `chosen` is the number of experts per token. `everyone`, act [tokens(), dim],
  // receives the rows of all engines. Returns false if the group has failed.
  bool share(const View& x, const RouteArgs& own, std::int64_t chosen, const View& everyone);
  // The (token, expert) pairs of all engines, for ExpertSpread::arrange().
  RouteArgs routed() const;
  // Finds the engine of each row of ExpertSpread::arrange(). For this engine's tokens, changes `pair_rows` to
  // row indices of `own` in give_back().
  struct Arranged {
    View pair_rows, tokens, order;
  };
  void divide(const ExpertSpread& spread, const Arranged& arranged);
  // Sends this rank's rows, act [rows, dim], to the engines of their tokens. `sent`, act [most_tokens() *
  // chosen, dim], is a workspace. `own`, act [n * chosen, dim], receives this engine's rows on the engine's
  // first rank.
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

  // Members from here on describe the current step.

  // index of each engine's first token; the last element is the number of tokens of all engines
  std::vector<std::int64_t> first_token_;
  std::int64_t most_tokens_ = 0;

  // Members from here on describe the current layer.
  std::size_t chosen_ = 0, heads_ = 0;  // experts per token; number of `starts` in a routing
  std::vector<std::int32_t> routes_;    // for each engine: `starts`, then the token of each pair
  std::vector<std::int32_t> starts_;    // index of each expert's first pair, over all engines
  std::vector<std::int32_t> pair_tokens_;
  std::vector<std::int32_t> own_pairs_;      // for each pair of this engine: index in pair_tokens_
  std::vector<std::int32_t> row_of_engine_;  // for each row: index among the rows of the same engine
  // [engine][rank]: index of the rank's first row for the engine
  std::vector<std::vector<std::int64_t>> first_rows_;
  std::vector<std::size_t> offsets_;
  std::int64_t first_row_ = 0;
  std::span<const std::int32_t> row_tokens_;
};

}  // namespace octavo
