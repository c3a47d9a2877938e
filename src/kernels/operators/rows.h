// Operators on rows of tokens: embedding, norms, products, activations.
#pragma once

#include "kernels/kinds.h"
#include "kernels/on_device.h"
#include "kernels/weight.h"
#include "tensor/view.h"

namespace octavo {

// rms:   x / sqrt(mean(x^2) + eps) * weight
// layer: (x - mean(x)) / sqrt(var(x) + eps) * weight + bias
// affine: x * weight + bias
struct Norm {
  NormKind kind = NormKind::none;
  float eps = 0;
  View weight = {};  // f32 [dim]
  View bias = {};    // f32 [dim]; optional
};

// Computes out[i] = table[ids[i]] * scale + position_table[positions[i]] + type_table[types[i]].
struct EmbedArgs {
  View ids;  // i32 [n]
  const Weight& table;
  float scale = 1;
  const Weight* position_table = nullptr;  // learned positions; optional
  View positions = {};                     // i32 [n]; required if position_table is set
  const Weight* type_table = nullptr;
  View types = {};                         // i32 [n]; required if type_table is set
  View out;                                // f32 [n, dim]
};

// A rank's rows of an embedding table that is divided among ranks: those of the ids [first, first + count).
struct OwnRows {
  std::int32_t first = 0;
  std::int32_t count = 0;

  OCTAVO_HOST_DEVICE bool has(std::int32_t id) const { return id >= first && id < first + count; }
};

// Computes own[i] = ids[i] - first, or 0 if another rank has the row.
struct OwnIdsArgs {
  View ids;  // i32 [n]
  OwnRows rows;
  View own;  // i32 [n]
};

// Sets x[i] to 0 if another rank has the row of ids[i].
struct KeepOwnRowsArgs {
  View ids;  // i32 [n]
  OwnRows rows;
  View x;  // f32 [n, dim], in place
};

// Computes residual = (residual + delta_scale * delta_norm(delta)) * residual_scale and out = norm(residual).
// With `replace`, the residual also becomes norm(residual): post-norm, as in BERT.
struct AddNormArgs {
  View residual;    // f32 [n, dim], updated in place
  View delta = {};  // act [n, dim]; optional
  float delta_scale = 1;
  Norm delta_norm = {};      // norm of delta; kind none: delta is not normalised
  View residual_scale = {};  // f32 [1]; optional; if missing, 1
  Norm norm = {};  // norm of the result; kind none: out is the residual, converted to the format of out
  bool replace = false;
  View out = {};  // act [n, dim]; optional
};

// Computes sums[i] = factor * sum of x[i, k]^2: a rank's part of an RMS norm over the heads of all ranks.
struct SumSquaresArgs {
  View x;  // act [n, dim]
  double factor = 1;
  View sums;  // f32 [n, 1]
};

// Computes x[i] = x[i] / sqrt(sums[i] / count + eps) * weight.
struct NormBySquaresArgs {
  View x;     // act [n, dim], in place
  View sums;  // f32 [n, 1]
  std::int64_t count = 0;
  float eps = 0;
  View weight;  // f32 [dim]
};

// Computes y = x * w^T + bias.
struct MatmulArgs {
  View x;  // w.activation() [m, cols]
  const Weight& w;
  View bias = {};  // f32 [rows]; optional
  View y;          // f32 or act [m, rows]
};

// gated: y = act(x[:, :h]) * x[:, h:];  else y = act(x)
// swigluoai, with g = min(x[:, :h], limit): y = g * sigmoid(alpha * g) * (clamp(x[:, h:], -limit, limit) + 1)
// xielu (Huang and Schlag, "Deriving Activation Functions Using Integration", 2024), with a =
// softplus(slopes):
//   y = a[0] * x * x + x / 2 if x > 0, else (expm1(min(x, -1e-6)) - x) * (1/2 + a[1]) + x / 2
struct ActivateArgs {
  View x;  // act [m, 2h] or [m, h]
  Activation activation = Activation::silu;
  bool gated = true;
  float alpha = 1;  // alpha and limit: only for swigluoai
  float limit = 0;
  View slopes = {};  // f32 [2]; for xielu
  View y;            // act [m, h]
};

// Computes x = max(0, x - mean(x) - deviations * std(x)), where mean and std are those of the row. It keeps
// only the greatest elements of each row (Gemma 3n, 2025).
struct KeepTailArgs {
  View x;  // act [n, dim], in place
  float deviations = 0;
};

// Computes y[i] = x[i] * factors[rows[i]].
struct ScaleRowsArgs {
  View x;          // act [n, dim]
  View factors;    // f32 [m]
  View rows = {};  // i32 [n]; optional; if missing, row i uses factors[i]
  View y;          // act [n, dim]; may be x
};

// Computes y = min(max(x, least), most), per column.
struct ClampArgs {
  View x;      // act [n, dim]
  View least;  // f32 [dim]; may be infinite
  View most;   // f32 [dim]
  View y;      // act [n, dim]; may be x
};

// Computes y[i][k] = exp(x[i][k]) / sum over j of exp(x[i][j]). Columns of y after those of x become 0.
struct SoftmaxArgs {
  View x;  // act [n, dim]
  View y;  // act [n, at least dim]; not x
};

// Computes out[i] = x[rows[i]].
struct GatherRowsArgs {
  View x;     // f32 or act [n, dim]
  View rows;  // i32 [r]
  View out;   // [r, dim] in the format of x
};

// Pools the rows [starts[s], starts[s + 1]) of x (at least one) into out[s]. Rows are added in order.
// `first` and `last` select one row; `mean` is the mean; `max` is the maximum of each column; `sum_by_root`
// is the sum divided by the square root of the number of rows; `weighted` is the mean in which row i,
// counted from 1, has weight i.
struct PoolArgs {
  View x;       // f32 [n, dim]
  View starts;  // i32 [sequences + 1]
  Pool pool = Pool::mean;
  View out;  // f32 [sequences, dim]
};

// Writes tokens sampled in the previous step, which the host does not know yet, to the input ids:
// ids[tokens[i]] = max(sampled[rows[i]], 0). If a row has no token (-1), the input id is 0.
struct PutSampledArgs {
  View ids;      // i32 [n], in place
  View tokens;   // i32 [p], no duplicates
  View sampled;  // i32 [r]
  View rows;     // i32 [p]
};

// Computes logits = cap(logits * scale), with cap(x) = c * tanh(x / c).
struct ScaleLogitsArgs {
  View logits;  // f32 [r, vocab], in place
  float scale = 1;
  float soft_cap = 0;  // c: limit of the logits; 0: no limit
};

}  // namespace octavo
