// Operators of mixture-of-experts layers.
#pragma once

#include <span>

#include "kernels/kinds.h"
#include "kernels/on_device.h"
#include "kernels/router.h"
#include "kernels/weight.h"
#include "tensor/view.h"

namespace octavo {

// Selects the `chosen` experts with the greatest scores; of equal scores, the lower index wins. A score is
// the softmax over all experts, the sigmoid of the logit, or the square root of its softplus. A bias
// (RouteArgs) changes the selection, but not the weights. If groups > 1, experts form groups of consecutive
// indices. The `groups_kept` groups with the greatest sums of their `group_best` greatest scores are
// eligible (DeepSeek-V2 and V3, 2024). The weight of an expert is its score times `scale`; if renormalised,
// it is also divided by the sum of the selected scores.
//
// sparsemixer (Liu et al., "GRIN", 2024) selects the greatest logits, without bias and groups. The weight of
// an expert with logit t is its softmax over the experts that are not yet selected and whose logits s are
// near t: (t - s) / max(|s|, t) <= 2 * jitter.
struct RouterRule {
  int chosen = 0;
  bool renormalise = false;
  RouterScores scores = RouterScores::softmax;
  float scale = 1;
  int groups = 1;
  int groups_kept = 1;
  int group_best = 1;  // 1 or 2: number of greatest scores that are added per group
  float jitter = 0;    // only for sparsemixer
};

// Selects the experts of each token and sorts the pairs (token, expert) by expert, then by token. The
// position of a pair in this order is its index.
struct RouteArgs {
  View logits;       // f32 [n, experts]
  View bias = {};    // f32 [experts]; optional
  View scales = {};  // f32 [experts]; optional: a factor for the weight of each expert
  // Optional, f32 [n, chosen]: experts to use instead of the selection. Numbers are f32, as in all tables.
  View given = {};
  RouterRule rule;
  View weights;  // f32 [n, chosen]: in descending order for each token
  View pair_rows;  // i32 [n, chosen]: index of each pair
  View tokens;   // i32 [n * chosen]: token of each pair, by index of the pair
  View starts;   // i32 [experts + 1]: expert e has the pairs [starts[e], starts[e + 1])
};

// Computes y[p] = x[rows[p]] * w[e]^T + bias[e] for every pair p of expert e.
struct GroupedMatmulArgs {
  View x;                            // act [m, cols]
  View rows = {};                    // i32 [pair_rows]; optional; if missing, y[p] uses x[p]
  View starts;                       // i32 [experts + 1], from RouteArgs
  std::span<const Weight* const> w;  // one per expert, with equal shapes
  View bias = {};                    // f32 [experts, rows]; optional
  View y;                            // act [pair_rows, rows]
};

// Computes out[i] = (sum over k, ascending, of weights[i, k] * y[pair_rows[i, k]])
//                   + gate_activation(shared_gate[i]) * shared[i].
struct CombineArgs {
  View y;                 // act [pair_rows, dim]
  View pair_rows;         // i32 [n, chosen]
  View weights = {};      // f32 [n, chosen]; optional; if missing, weights are 1
  View shared = {};       // act [n, dim]; optional
  View shared_gate = {};  // f32 [n, 1]; optional; if missing, the factor is 1
  Activation gate_activation = Activation::sigmoid;  // sigmoid or softplus
  View out;               // act [n, dim]
};

// Computes y[rows[p]] += x[p].
struct AddRowsArgs {
  View x;     // act [pair_rows, dim]
  View rows;  // i32 [pair_rows]; the rows that are added have no duplicates
  View y;     // f32 or act [n, dim], in place
  // Optional, i32 [2 or more]: only rows p from the first number to before the last number are added.
  View range = {};

  // Returns whether row p is added. The caller must be able to read the memory of `range`.
  OCTAVO_HOST_DEVICE bool adds(std::int64_t p) const {
    const auto* const numbers = static_cast<const std::int32_t*>(range.data);
    return numbers == nullptr || (p >= numbers[0] && p < numbers[range.shape[0] - 1]);
  }
};

}  // namespace octavo
