// Operators of mixtures of experts.
#pragma once

#include <span>

#include "kernels/kinds.h"
#include "kernels/router.h"
#include "kernels/weight.h"
#include "tensor/view.h"

namespace octavo {

// Which experts a token goes to: the `chosen` with the greatest scores, equal ones by number. Scores are the
// softmax over all experts, or each logit's sigmoid, or the root of its softplus. For the choice alone they
// get a bias (RouteArgs), and where there are several groups of neighbouring experts, only those of
// `groups_kept` groups count: the groups whose `group_best` greatest scores have the greatest sum
// (DeepSeek-V2 and V3, 2024). Weights are the scores, divided by the sum of those chosen where they are
// renormalised, times `scale`. sparsemixer (Liu et al., "GRIN", 2024): the greatest logits are chosen,
// without bias and groups, and each weighs as the softmax over those experts not chosen before it whose
// logits s are near its own t: (t - s) / max(|s|, t) <= 2 * jitter.
struct RouterRule {
  int chosen = 0;
  bool renormalise = false;
  RouterScores scores = RouterScores::softmax;
  float scale = 1;
  int groups = 1;  // of equally many experts
  int groups_kept = 1;
  int group_best = 1;  // 1 or 2
  float jitter = 0;    // of sparsemixer
};

// Chooses experts, and gives every pair (token, expert) a place: experts ascending, tokens ascending.
struct RouteArgs {
  View logits;       // f32 [n, experts]
  View bias = {};    // f32 [experts]; optional
  View scales = {};  // f32 [experts]; optional: what the weight of an expert is multiplied by
  View given = {};   // f32 [n, chosen]; optional: the experts' numbers, which nothing else decides on then
  RouterRule rule;
  View weights;  // f32 [n, chosen]: of each token's experts, the greatest first
  View places;   // i32 [n, chosen]: where their pairs are
  View tokens;   // i32 [n * chosen]: each place's token
  View starts;   // i32 [experts + 1]: the places of expert e are [starts[e], starts[e + 1])
};

// For every place p of expert e: y[p] = x[rows[p]] * w[e]^T + bias[e]
struct GroupedMatmulArgs {
  View x;                            // act [m, cols]
  View rows = {};                    // i32 [places]; optional: y[p] is of x[p]
  View starts;                       // i32 [experts + 1], as RouteArgs gives them
  std::span<const Weight* const> w;  // one for each expert, of one shape
  View bias = {};                    // f32 [experts, rows]; optional
  View y;                            // act [places, rows]
};

// out[i] = sum over k, ascending, of weights[i, k] * y[places[i, k]]  + sigmoid(shared_gate[i]) * shared[i]
struct CombineArgs {
  View y;                 // act [places, dim]
  View places;            // i32 [n, chosen]
  View weights = {};      // f32 [n, chosen]; optional: each is 1
  View shared = {};       // act [n, dim]; optional
  View shared_gate = {};  // f32 [n, 1]; optional: shared counts in full
  View out;               // act [n, dim]
};

// y[rows[p]] += x[p]
struct AddRowsArgs {
  View x;     // act [places, dim]
  View rows;  // i32 [places], each at most once
  View y;     // f32 or act [n, dim], in place
};

}  // namespace octavo
