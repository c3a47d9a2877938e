// Operators of recurrent layers.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/operators/rows.h"

namespace octavo {

// Computes y = norm(x) * activation(gate * gate_scale), where each head of x is normalised separately. With
// `gate_first`: y = norm(x * activation(gate * gate_scale)).
struct GateArgs {
  View x;     // act [n, heads * dim]
  View gate;  // act [n, heads * dim]
  // Weight [dim] for all heads, or [heads, dim], without bias; dim <= kMaxGateDim.
  Norm norm = {};
  bool gate_first = false;
  Activation activation = Activation::sigmoid;  // any activation except swigluoai
  float gate_scale = 1;
  View y;  // act [n, heads * dim]
};
constexpr int kMaxGateDim = 16384;

// The sequences of a step, for recurrent layers. Each sequence has a state of fixed size in a slot. The
// tokens [starts[s], starts[s + 1]) update the state of sequence s in order. At position 0 the state starts
// as zero, and previous contents of the slot are ignored.
struct StatePlan {
  View slots;  // i32 [sequences]: slot of each sequence's state; no duplicates among sequences with tokens
  View starts;     // i32 [sequences + 1]
  View positions;  // i32 [n]
  // Optional, i32 [n]: slot that gets a copy of the state after the token; -1: no copy. No sequence of the
  // step may have its state in such a slot.
  View copies = {};
};
constexpr int kMaxConvWidth = 8;
constexpr int kMaxStateDim = 256;

// y[t, c] = silu(bias[c] + sum over j, ascending, of weight[c, j] * in[t + ahead - width + 1 + j, c %
// inputs]) *
//   y_gate[t, c]
// in[t, c] = x[t, c] * x_gate[t, c], and 0 before and after the sequence
struct ConvArgs {
  View x;            // act [n, inputs]
  View x_gate = {};  // act [n, inputs]; optional
  View weight;       // f32 [channels, width], 2 <= width <= kMaxConvWidth; channels: a multiple of inputs
  View bias = {};    // f32 [channels]; optional
  bool silu = true;
  // Number of later tokens that an output depends on. If not 0, the step has complete sequences, and `state`
  // is not used.
  int ahead = 0;
  View y_gate = {};  // act [n, channels]; optional
  View state;  // f32 [slots, width - 1, inputs], in place: last width - 1 values of `in` of each sequence
  StatePlan plan;
  View y;  // act [n, channels]
};

// The gated delta rule (Yang et al., "Gated Delta Networks", 2024). For each token and each value head h,
// with its key head (key_head_of): q and k are divided by their norms, and q by sqrt(key_dim). Then
//   S *= exp(-exp(a_log) * softplus(a + dt_bias)), or exp(least_log * sigmoid(exp(a_log) * (a + dt_bias)))
//   S += k (beta_scale * sigmoid(b) * (v - S^T k))^T
//   out = S^T q
// a and dt_bias have one number per value head, or one per row of its S (Kimi Team, "Kimi Linear", 2025).
struct GatedDeltaArgs {
  View qkv;  // act [n, 2 * key_heads * key_dim + value_heads * value_dim]: all queries, all keys, all values
  int key_heads = 0;
  bool tiled = false;  // see key_head_of
  View ba;             // f32 [n, value_heads + size of dt_bias]: b of each value head, then a
  View a_log;          // f32 [value_heads]
  View dt_bias;        // f32 [value_heads] or [value_heads * key_dim]
  float beta_scale = 1;
  float least_log = 0;  // below 0: logarithm of the strongest decay, which selects the second formula
  View state;  // f32 [slots, value_heads, key_dim, value_dim], dims up to kMaxStateDim, in place: S
  StatePlan plan;
  View out;  // act [n, value_heads * value_dim]

  // Returns the key head of a value head. Consecutive value heads share a key head; with `tiled`, value head
  // h uses key head h modulo key_heads.
  constexpr std::int64_t key_head_of(std::int64_t value_head) const {
    return tiled ? value_head % key_heads : value_head * key_heads / state.size(1);
  }
};

// Computes a time step as softplus(dt * scale + bias), clamped to [least, most].
struct TimeStep {
  float scale = 1;
  View bias = {};  // f32, one number per dt
  float least = 0;
  float most = std::numeric_limits<float>::infinity();
};

// The scan of Mamba2 (Dao and Gu, "Transformers are SSMs", 2024), for each token and head h. Head h uses B
// and C of group h * groups / heads. step is time_step(dt[h]), or 1 if dt is missing.
//   S = exp(-exp(a_log) * step) * S + B (step * x)^T
//   out = S^T C + d * x
struct ScanArgs {
  View xbc;  // act [n, heads * head_dim + 2 * groups * state_dim]: x of all heads, B of all groups, then C
  int groups = 0;
  View dt = {};             // act [n, heads]; optional
  TimeStep time_step = {};  // used if dt exists
  View a_log;               // f32 [heads]
  View d;                   // f32 [heads]
  View state;               // f32 [slots, heads, state_dim, head_dim], dims up to kMaxStateDim, in place: S
  StatePlan plan;
  View out;  // act [n, heads * head_dim]
};

// The selective scan of Mamba (Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State
// Spaces", 2023), for each token, channel c and element i of the state. With step = time_step(dt[c]):
//   s[i] = exp(-exp(a_log[c, i]) * step) * s[i] + b[i] * step * x[c]
//   out[c] = (sum over i, ascending, of s[i] * c[i]) + d[c] * x[c]
struct ChannelScanArgs {
  View x;   // act [n, channels]
  View bc;  // act [n, 2 * state_dim]: b, then c
  View dt;  // act [n, channels]
  TimeStep time_step;
  View a_log;  // f32 [channels, state_dim]
  View d;      // f32 [channels]
  View state;  // f32 [slots, state_dim, channels], state_dim up to kMaxStateDim, in place: s
  StatePlan plan;
  View out;  // act [n, channels]
};

// The delta rule of RWKV-7 (Peng et al., "RWKV-7 Goose with Expressive Dynamic State Evolution", 2025), with
// a decay and a learning rate for each row of a state. For each token and head:
//   u = k * k_k divided by its norm; a = sigmoid(rate)
//   k' = k * (1 + (a - 1) * k_a); v' = v + sigmoid(mix) * (first - v)
//   S = exp(-exp(-1/2) * sigmoid(decay)) * S - (a * u) (S^T u)^T + k' v'^T
//   out = (norm(S^T r) + v' * sum(r * k' * r_k)) * gate
struct WkvArgs {
  View r, k, v;  // act [n, heads * head_dim]
  View decay;    // f32 [n, heads * head_dim]
  View rate;     // act [n, heads * head_dim]; gate has the same shape
  View gate;
  View mix = {};       // act [n, heads * head_dim]; optional; if missing, v' is v
  View first = {};     // same shape as mix; required if mix exists
  View k_k, k_a, r_k;  // f32 [heads * head_dim]
  float eps = 0;       // added to the square of the norm in u
  Norm norm;           // kind layer, separately for each head; weight and bias [heads * head_dim]
  View state;          // f32 [slots, heads, head_dim, head_dim], head_dim up to kMaxStateDim, in place: S
  StatePlan plan;
  View out;  // act [n, heads * head_dim]
};

// Computes compressed cache entries of `rate` tokens each (DeepSeek-AI, "DeepSeek-V4", 2026). Entry w is
// the weighted mean, per column, of the values of its tokens [w * rate, (w + 1) * rate), added in order. The
// weight of token t is exp(gate[t] + bias[t % rate]). With two sets of columns, entry w also includes the
// tokens of entry w - 1: a token has values for the next entry in the first set, and values for its own entry
// in the second set.
struct CompressArgs {
  View values;  // f32 [n, sets * dim], sets 1 or 2
  View gates;   // same shape as values
  View bias;    // f32 [rate, sets * dim]
  // f32 [slots, sets, 3, dim], in place. For the current entry and, with two sets, the next entry: the
  // logarithm of the greatest weight, then the sum of weights and the sum of weighted values, both divided by
  // the greatest weight.
  View state;
  StatePlan plan;
  // f32 [n, dim]: row t is written only if token t is the last token of an entry.
  View means;
};

}  // namespace octavo
