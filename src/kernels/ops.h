// The seam: every operator that a model needs, at fusion grain, as a constant table of typed functions.
//
// Model code calls `ops.matmul(stream, {...})`. A backend that forgets an operator does not compile; one that
// cannot do what a model asks says so in `supports`, when the model is loaded. kernels/reference is the
// specification: plain loops in double precision; every other backend is tested against it.
//
// Determinism: an output element depends on its own inputs only, and is summed in an order that the shapes of
// the weights and the absolute position in the sequence fix: not the batch, the chunk, the thread or the
// neighbours.
//
// `act` stands for the activation format of the weights at hand (Weight::activation): f32, bf16 or f16. Empty
// views mean "not there" wherever a comment says optional.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>

#include "base/error.h"
#include "kernels/attention_plan.h"
#include "kernels/device.h"
#include "kernels/kinds.h"
#include "kernels/router.h"
#include "kernels/sampling_math.h"
#include "kernels/weight.h"
#include "tensor/encoding.h"
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

// out[i] = table[ids[i]] * scale + positions_table[positions[i]] + type_table[types[i]]
struct EmbedArgs {
  View ids;  // i32 [n]
  const Weight& table;
  float scale = 1;
  const Weight* position_table = nullptr;  // learned positions; optional
  View positions = {};                     // i32 [n]; with position_table
  const Weight* type_table = nullptr;      // of token types; optional
  View types = {};                         // i32 [n]; with type_table
  View out;                                // f32 [n, dim]
};

// residual = (residual + delta_scale * delta_norm(delta)) * residual_scale;  out = norm(residual)
// With `replace` the residual becomes norm(residual), too: norms behind the residual, as BERT has them.
struct AddNormArgs {
  View residual;    // f32 [n, dim], updated in place
  View delta = {};  // act [n, dim]; optional
  float delta_scale = 1;
  Norm delta_norm = {};  // kind none: delta as it is
  View residual_scale = {};  // f32 [1]; optional: 1
  Norm norm = {};        // kind none: out is the residual, converted
  bool replace = false;
  View out = {};  // act [n, dim]; optional
};

// y = x * w^T + bias
struct MatmulArgs {
  View x;  // w.activation() [m, cols]
  const Weight& w;
  View bias = {};  // f32 [rows]; optional
  View y;          // f32 or act [m, rows]
};

// gated: y = act(x[:, :h]) * x[:, h:];  else y = act(x)
// swigluoai, with g = min(x[:, :h], limit): y = g * sigmoid(alpha * g) * (clamp(x[:, h:], -limit, limit) + 1)
// xielu (Huang and Schlag, "Deriving Activation Functions Using Integration", 2024), a being softplus(slopes):
//   y = a[0] * x * x + x / 2 where x > 0, else (expm1(min(x, -1e-6)) - x) * (1/2 + a[1]) + x / 2
struct ActivateArgs {
  View x;  // act [m, 2h] or [m, h]
  Activation activation = Activation::silu;
  bool gated = true;
  float alpha = 1;  // this and limit: of swigluoai
  float limit = 0;
  View slopes = {};  // f32 [2]; of xielu
  View y;            // act [m, h]
};

// x = max(0, x - mean(x) - deviations * std(x)), over each row: the upper tail is left (Gemma 3n, 2025)
struct KeepTailArgs {
  View x;  // act [n, dim], in place
  float deviations = 0;
};

// y[i] = x[i] * factors[rows[i]]
struct ScaleRowsArgs {
  View x;          // act [n, dim]
  View factors;    // f32 [m]
  View rows = {};  // i32 [n]; optional: i itself
  View y;          // act [n, dim]; may be x
};

// y = min(max(x, least), most), of each column
struct ClampArgs {
  View x;      // act [n, dim]
  View least;  // f32 [dim]; may be infinite
  View most;   // f32 [dim]
  View y;      // act [n, dim]; may be x
};

// Which experts a token goes to: the `chosen` of greatest score, equal ones by number. Scores are the softmax
// over all experts, or each logit's sigmoid, or the root of its softplus. For the choice alone they get a bias
// (RouteArgs), and where
// there are several groups of neighbouring experts, only those of `groups_kept` groups count: the groups
// whose `group_best` greatest scores have the greatest sum (DeepSeek-V2 and V3, 2024). Weights are the
// scores, divided by the sum of those chosen where they are renormalised, times `scale`. sparsemixer (Liu et
// al., "GRIN", 2024): the greatest logits are chosen, without bias and groups, and each weighs as the softmax
// over those experts not chosen before it whose logits s are near its own t: (t - s) / max(|s|, t) <= 2 *
// jitter.
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
  View logits;     // f32 [n, experts]
  View bias = {};  // f32 [experts]; optional
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

// cos and sin, times `scale`, of the angles by which tokens turn: position * frequency in single precision,
// as it was when the models were trained.
struct AnglesArgs {
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View cos;  // f32 [n, pairs]
  View sin;
};

// Rotary embedding (Su et al., RoFormer, 2021): the first rotary_dim elements of a head turn by the angles of
// its token. Pairs are (i, i + rotary_dim/2), or (2i, 2i + 1) when interleaved. rotary_dim 0: none.
struct Rope {
  View cos = {};  // f32 [n, rotary_dim / 2]
  View sin = {};
  int rotary_dim = 0;
  bool interleaved = false;
};

// Splits the fused projection, normalises queries and keys, rotates them, writes queries out and keys and
// values into the paged cache.
struct QkvStoreArgs {
  View qkv;  // act [n, (q_heads + 2 * kv_heads) * head_dim]: all queries, all keys, all values
  int q_heads = 0;
  // Weight [head_dim], or [heads, head_dim] with a weight per head (each head is normalised on its own), or
  // with norm_whole_row [heads * head_dim] over the whole row; kind none: as they are.
  Norm q_norm = {};
  Norm k_norm = {};
  bool norm_whole_row = false;
  bool norm_turned = false;  // rms norms of each head come behind the rotation
  Norm v_norm = {};          // of the values of each head, weight [head_dim]
  bool stores = true;        // false: qkv is queries alone, and the cache is left as it is
  Rope rope = {};
  View slots;     // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;  // gives kv_heads and head_dim
  View q_out;     // act [n, q_heads, head_dim]
};

// The products of each head with a matrix of its own: y[i, h] = x[i, h] * w_h^T, w_h being rows
// [h * rows, (h + 1) * rows) of w.
struct HeadMatmulArgs {
  View x;           // w.activation() [m, heads, cols], heads and rows may lie apart
  const Weight& w;  // plain [heads * rows, cols], rows a multiple of kHeadRows, cols at most kMaxLatentDim
  View y;           // w.activation() [m, heads, rows], likewise
};
constexpr int kHeadRows = 32;
constexpr int kMaxLatentDim = 1024;

// What latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) keeps of a token, and the half of its queries that
// turns. A token has one key head: a latent of `cache.spec.values_in_keys` numbers, which is normalised and
// is also its value, then the numbers that turn, then an indexer's as they are. Of each head of q the last
// numbers turn, as many, and go to the end of the same head of q_out, whose beginning is left alone.
struct LatentStoreArgs {
  View kv;               // f32 [n, score_dim]
  View index_keys = {};  // act [n, index_dim]; with index_dim
  Norm norm;      // weight [values_in_keys]
  Rope rope;      // rotary_dim: score_dim - values_in_keys
  View slots;     // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;  // of one head
  View q;         // act [n, heads, any]
  View q_out;     // act [n, heads, score_dim]
};

// Which tokens a query of sparse attention sees (DeepSeek-AI, "DeepSeek-V3.2", 2025): of those up to its own
// the `chosen.size(1)` of greatest score, equal ones by position. The score of token t, whose index key is
// k_t, is the sum over heads, ascending, of weights[h] * max(0, q_h k_t). Or which entries, where these stand for
// several tokens (KvSpec::rate): of those whose tokens are all up to its own.
struct ChooseTokensArgs {
  View q;         // act [n, heads, index_dim], heads at most kMaxIndexHeads
  View weights;   // f32 [n, heads]
  KvLayer cache;  // of one head
  const AttentionPlan& plan;
  View chosen;  // i32 [n, most]: positions, ascending; behind the last of fewer kNoToken
};
constexpr int kMaxIndexHeads = 256;
constexpr std::int32_t kNoToken = std::numeric_limits<std::int32_t>::max();

// Attention of each query over its sequence's cached tokens, read from the pages: up to and including its own
// or, where it is not causal, all of them.
struct AttentionArgs {
  View q;  // act [n, q_heads, score_dim]
  KvLayer cache;
  const AttentionPlan& plan;
  float scale = 1;     // > 0
  bool causal = true;  // as the plan's
  // > 0: a query sees the last `window` tokens, itself included, and where it is not causal as many on the
  // other side; the plan's, if it has one.
  int window = 0;
  // > 0: a query sees no tokens of chunks before its own; chunks have so many tokens, the first begins at
  // position 0. Causal, and the window is as long.
  int chunk = 0;
  float soft_cap = 0;  // > 0: scores become cap * tanh(score / cap)
  // f32 [q_heads]; optional: scores grow by it for each token that a key is further on (Press et al.,
  // "Train Short, Test Long", 2021). Without soft_cap.
  View slopes = {};
  // f32 [q_heads, 2 * most + 1]; optional: scores grow by the number that stands in the middle where a key is the
  // query's own, and so many places on as the key is behind it in the text; keys further away than `most` have the
  // outermost (Raffel et al., "Exploring the Limits of Transfer Learning", 2020). Without soft_cap.
  View distance_bias = {};
  View sinks = {};  // f32 [q_heads]: a score of each head that takes its share and has no value; optional
  View chosen = {};  // as ChooseTokensArgs makes it: a query sees these tokens alone; optional. With causal
  // Of caches with KvSpec::shared_rows: a query sees entries of another such cache, too, whose tokens are all up to
  // its own, or of these the chosen ones. Optional.
  KvLayer entries = {};
  const AttentionPlan* entry_plan = nullptr;
  View out;          // act [n, q_heads * value_dim]
};

// The last numbers of each head, two for each of `frequencies`, turn by the angles of its token (AnglesArgs), pairs
// being neighbours, or `back`. Before, heads are normalised, each on its own.
struct TurnEndsArgs {
  View x;            // act [n, heads, dim], in place
  Norm norm = {};    // weight [dim]; kind none: as they are
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;   // of cos and sin
  bool back = false;
};

// Rows to a cache with KvSpec::shared_rows, each a token's, from number `first` of its row there on: normalised, then
// their ends turned as those of TurnEndsArgs. Of entries that stand for several tokens, those alone whose token is the
// last of them, and they turn by the angles of the first.
struct StoreRowsArgs {
  View x;  // f32 [n, dim]
  Norm norm;         // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View slots;     // i64 [n]: of tokens: block id * block_size + offset in the block
  KvLayer cache;
  std::int64_t first = 0;
};

// y = norm(x) * activation(gate * gate_scale), each head of x normalised on its own; with `gate_first`
// y = norm(x * activation(gate * gate_scale))
struct GateArgs {
  View x;     // act [n, heads * dim]
  View gate;  // act [n, heads * dim]
  // Weight [dim] for all heads, or [heads, dim], dim <= kMaxGateDim; no bias; kind none: x as it is.
  Norm norm = {};
  bool gate_first = false;
  Activation activation = Activation::sigmoid;  // not swigluoai
  float gate_scale = 1;
  View y;  // act [n, heads * dim]
};
constexpr int kMaxGateDim = 16384;

constexpr int kMaxStreams = 8;  // residuals of a token

// What recurrent layers know of a step. Each sequence has a state of fixed size in place of its past; its
// tokens [starts[s], starts[s + 1]) pass it one after the other. At position 0 a sequence begins with a state
// of zeros, whatever its slot holds.
struct StatePlan {
  View slots;      // i32 [sequences]: where each state is; different ones where there are tokens
  View starts;     // i32 [sequences + 1]
  View positions;  // i32 [n]
  // i32 [n]; optional: where a copy of the state behind each token goes, another slot than those of sequences; -1:
  // nowhere.
  View copies = {};
};
constexpr int kMaxConvWidth = 8;
constexpr int kMaxStateDim = 256;

// y[t, c] = silu(bias[c] + sum over j, ascending, of weight[c, j] * in[t - width + 1 + j, c % inputs]) *
//   y_gate[t, c]
// in[t, c] = x[t, c] * x_gate[t, c]
struct ConvArgs {
  View x;            // act [n, inputs]
  View x_gate = {};  // act [n, inputs]; optional
  View weight;       // f32 [channels, width], 2 <= width <= kMaxConvWidth; channels: a multiple of inputs
  View bias = {};    // f32 [channels]; optional
  bool silu = true;
  View y_gate = {};  // act [n, channels]; optional
  View state;        // f32 [slots, width - 1, inputs], in place: the last `in` of each sequence
  const StatePlan& plan;
  View y;  // act [n, channels]
};

// The gated delta rule (Yang et al., "Gated Delta Networks", 2024). For each token, and each value head h
// with its key head (key_head_of), where q and k are divided by their lengths and q by
// sqrt(key_dim):
//   S *= exp(-exp(a_log) * softplus(a + dt_bias))
// a is a number of each value head or, as dt_bias then is, too, one for each row of its S (Kimi Team, "Kimi
// Linear", 2025).
//   S += k (beta_scale * sigmoid(b) * (v - S^T k))^T
//   out = S^T q
struct GatedDeltaArgs {
  View qkv;  // act [n, 2 * key_heads * key_dim + value_heads * value_dim]: all queries, all keys, all values
  int key_heads = 0;
  bool tiled = false;  // key_head_of
  View ba;       // f32 [n, value_heads + size of dt_bias]: b of each value head, then a
  View a_log;    // f32 [value_heads]
  View dt_bias;  // f32 [value_heads] or [value_heads * key_dim]
  float beta_scale = 1;
  View state;    // f32 [slots, value_heads, key_dim, value_dim], dims up to kMaxStateDim, in place: S
  const StatePlan& plan;
  View out;  // act [n, value_heads * value_dim]

  // Neighbouring value heads have one key head, or, `tiled`, as many of them as there are key heads one each.
  std::int64_t key_head_of(std::int64_t value_head) const {
    return tiled ? value_head % key_heads : value_head * key_heads / state.size(1);
  }
};

// A time step: softplus(dt * scale + bias), not below `least`, not above `most`.
struct TimeStep {
  float scale = 1;
  View bias = {};  // f32, one for each dt
  float least = 0;
  float most = std::numeric_limits<float>::infinity();
};

// The scan of Mamba2 (Dao and Gu, "Transformers are SSMs", 2024). For each token and head h, whose B and C
// are those of group h * groups / heads, and step = time_step(dt[h]), or 1 without dt:
//   S = exp(-exp(a_log) * step) * S + B (step * x)^T
//   out = S^T C + d * x
struct ScanArgs {
  View xbc;  // act [n, heads * head_dim + 2 * groups * state_dim]: x of all heads, B of all groups, then C
  int groups = 0;
  View dt = {};             // act [n, heads]; optional
  TimeStep time_step = {};  // with dt
  View a_log;               // f32 [heads]
  View d;                   // f32 [heads]
  View state;  // f32 [slots, heads, state_dim, head_dim], dims up to kMaxStateDim, in place: S
  const StatePlan& plan;
  View out;  // act [n, heads * head_dim]
};

// The selective scan of Mamba (Gu and Dao, "Mamba: Linear-Time Sequence Modeling with Selective State
// Spaces", 2023). For each token, channel c and number i of its state, and step = time_step(dt[c]):
//   s[i] = exp(-exp(a_log[c, i]) * step) * s[i] + b[i] * step * x[c]
//   out[c] = sum over i, ascending, of s[i] * c[i]  + d[c] * x[c]
struct ChannelScanArgs {
  View x;   // act [n, channels]
  View bc;  // act [n, 2 * state_dim]: b, then c
  View dt;  // act [n, channels]
  TimeStep time_step;
  View a_log;  // f32 [channels, state_dim]
  View d;      // f32 [channels]
  View state;  // f32 [slots, state_dim, channels], state_dim up to kMaxStateDim, in place: s
  const StatePlan& plan;
  View out;  // act [n, channels]
};

// The delta rule of RWKV-7 (Peng et al., "RWKV-7 Goose with Expressive Dynamic State Evolution", 2025), with
// a decay and a learning rate for each row of a state. For each token and head, with a = sigmoid(rate), u = k
// * k_k divided by its length, k' = k * (1 + (a - 1) * k_a) and v' = v + sigmoid(mix) * (first - v):
//   S = exp(-exp(-1/2) * sigmoid(decay)) * S - (a * u) (S^T u)^T + k' v'^T
//   out = (norm(S^T r) + v' * sum(r * k' * r_k)) * gate
struct WkvArgs {
  View r, k, v;  // act [n, heads * head_dim]
  View decay;    // f32 [n, heads * head_dim]
  View rate;     // act [n, heads * head_dim], as is gate
  View gate;
  View mix = {};       // act [n, heads * head_dim]; optional: v' is v
  View first = {};     // likewise; with mix
  View k_k, k_a, r_k;  // f32 [heads * head_dim]
  float eps = 0;       // added to the square of a length
  Norm norm;           // layer: of each head; weight and bias [heads * head_dim]
  View state;          // f32 [slots, heads, head_dim, head_dim], head_dim up to kMaxStateDim, in place: S
  const StatePlan& plan;
  View out;  // act [n, heads * head_dim]
};

// Entries that stand for `rate` tokens each (DeepSeek-AI, "DeepSeek-V4", 2026): a column of entry w is the mean of
// values, each of which weighs as exp(gate[t] + bias[t % rate]), over tokens t of [w * rate, (w + 1) * rate), ascending.
// With two sets of columns, over the first set of the tokens before those, [(w - 1) * rate, w * rate), and the second
// of its own.
struct CompressArgs {
  View values;  // f32 [n, sets * dim], sets 1 or 2
  View gates;   // likewise
  View bias;    // f32 [rate, sets * dim]
  // f32 [slots, sets, 3, dim], in place: of an entry, and of the next, the greatest weight, sums of weights and values.
  View state;
  const StatePlan& plan;
  View means;  // f32 [n, dim]: row t is written where token t is the last of an entry, others are left alone
};

// Manifold-constrained hyper-connections (Xie et al., "mHC", 2026): a token has several residuals x[j], and w is the
// product of a matrix with all of them, normalised together. What a layer reads is one of them all:
//   out = sum over j, ascending, of (sigmoid(w[j] * scale[0] + base[j]) + eps) * x[j]
// What it puts out goes to each (ExpandStreamsArgs):
//   post[j] = 2 * sigmoid(w[S + j] * scale[1] + base[S + j])
//   mix = the softmax of each row of S x S numbers w[2 S ..] * scale[2] + base[2 S ..], plus eps, made doubly
//         stochastic: columns, then `iterations` - 1 times rows and columns, are divided by their sums plus eps
struct CollapseStreamsArgs {
  View x;       // f32 [n, streams, dim], streams up to kMaxStreams
  View matrix;  // f32 [streams, streams * dim] or, with post and mix, [streams * (2 + streams), streams * dim]
  View base;    // f32 [rows of matrix]
  View scale;   // f32 [1] or [3]
  float norm_eps = 0;
  float eps = 0;
  int iterations = 0;
  View out;        // f32 [n, dim]
  View post = {};  // f32 [n, streams]; optional, as is mix
  View mix = {};   // f32 [n, streams * streams]
};

// x[k] = post[k] * delta + sum over j, ascending, of mix[j, k] * x[j]
struct ExpandStreamsArgs {
  View x;      // f32 [n, streams, dim], in place
  View delta;  // act [n, dim]
  View post;   // f32 [n, streams]
  View mix;    // f32 [n, streams * streams]
};

// Alternating updates (Baykal et al., "Alternating Updates for Efficient Transformers", 2023): a token has
// several streams, and layers work on the first. Before a layer, with m = tanh(router[t]),
//   x[t, j] += sum over i, ascending, of x[t, i] * (sum over p of coefs[j * streams + i, p] * m[p])
struct PredictStreamsArgs {
  View x;       // f32 [n, streams, dim], in place; streams up to kMaxStreams
  View router;  // f32 [n, streams]
  View coefs;   // f32 [streams * streams, streams]
};

// Behind the layer, which made x[t, 0] of `before`, with m of its result and change = x[t, 0] - before[t]:
//   x[t, j] += change * (1 + sum over p of coefs[j, p] * m[p]), where x[t, 0] is `before` again
//   out[t] = x[t, 0] * scale
struct CorrectStreamsArgs {
  View x;           // f32 [n, streams, dim], in place; streams up to kMaxStreams
  View before;      // f32 [n, dim]
  View router;      // f32 [n, streams]
  View coefs;       // f32 [streams, streams]
  View scale = {};  // f32 [dim]; optional
  View out;         // act [n, dim]
};

// x = x * rms(like) / max(rms(x), sqrt(1e-5)), over each row
struct MatchSizeArgs {
  View x;     // f32 [n, dim], in place
  View like;  // f32 [n, dim]
};

// out[i] = x[rows[i]]
struct GatherRowsArgs {
  View x;     // f32 or act [n, dim]
  View rows;  // i32 [r]
  View out;   // as x [r, dim]
};

// out[s] = the first, the last or the mean of rows [starts[s], starts[s + 1]) of x, of which there is one at
// least; of each column the greatest number; the sum, divided by the root of how many there are; or a mean
// where the i-th row, from 1 on, counts i times. Sums are in the order of the rows.
struct PoolArgs {
  View x;       // f32 [n, dim]
  View starts;  // i32 [sequences + 1]
  Pool pool = Pool::mean;
  View out;  // f32 [sequences, dim]
};

// ids[tokens[i]] = max(sampled[rows[i]], 0): tokens that the step before has sampled and the host has not
// seen. A row that found nothing to choose (-1) counts as token 0.
struct PutSampledArgs {
  View ids;      // i32 [n], in place
  View tokens;   // i32 [p], each at most once
  View sampled;  // i32 [r]
  View rows;     // i32 [p]
};

// logits = cap(logits * scale), cap(x) = c * tanh(x / c)
struct ScaleLogitsArgs {
  View logits;  // f32 [r, vocab], in place
  float scale = 1;
  float soft_cap = 0;  // 0: none
};

// A list for each row, flat: row r owns items [starts[r], starts[r + 1]).
struct RowLists {
  View starts;  // i32 [rows + 1]; optional: every list empty
  View ids;     // i32 token ids, each at most once in a row
};

// From logits to tokens, in vLLM's order: raw log-probabilities are taken; then mask, bias (minus infinity
// bans), penalties (repetition, frequency, presence), temperature, min_p, top_k, top_p, and one draw.
//
// Tokens are ordered by logit, the greater first, equal ones by id, the lower first. min_p, top_k and top_p
// each keep a beginning of that order: the tokens at least min_p times as likely as the first; exactly top_k
// of those; the fewest of those whose share of their mass reaches top_p. The draw inverts the cumulative
// distribution of what is kept, in the order of the ids. Masses are integers (kernels/sampling_math.h), so
// that all backends keep and draw the same tokens whatever the order in which they add.
//
// Every array is [rows] unless said otherwise. A row whose logits hold a NaN or plus infinity, or where
// nothing is left to choose, gets out_id -1, rank 0, kLogprobFloor and top ids -1.
struct SampleArgs {
  View logits;  // f32 [rows, vocab]; overwritten

  View temperature;  // f32: 0, or at least 1e-5. 0: the first in order, without filters
  View top_k;        // i32; 0: off
  View top_p;        // f32; 1: off
  View min_p;        // f32; 0: off
  View random;       // i64: 64 random bits, the draw
  View forced;       // i32: report on this token, from the raw logits, instead of choosing; -1: choose

  RowLists history;         // tokens of prompt and output
  View history_counts;      // i32, beside history.ids: times in the output; 0: only in the prompt
  View repetition_penalty;  // f32; this and the two below with history
  View frequency_penalty;   // f32
  View presence_penalty;    // f32

  RowLists bias;     // logit_bias, bans
  View bias_values;  // f32, beside bias.ids; never plus infinity

  View mask_rows;  // i32: row of `mask`, or -1; optional
  View mask;       // i32 [masks, (vocab + 31) / 32]: bit set = allowed; with mask_rows

  // What to report: the chosen token with its rank (1 + the tokens of greater logit), and a list.
  View top_counts;         // i32, at most k: how many of the first in order; -1: no log-probabilities at all
  RowLists reported;       // at most k tokens (also the same twice) to report instead of the first
  bool processed = false;  // log-probabilities after all processing instead of the model's own

  View out_id;            // i32
  View out_logprob;       // f32, as all below left alone where top_counts is -1
  View out_rank;          // i32
  View out_top_ids;       // i32 [rows, k]; entries beyond the row's list are left alone; optional: k is 0
  View out_top_logprobs;  // f32 [rows, k]
};

template <class Args>
void check(const Args& args);  // checks.cc: shapes and formats; a violation is a bug

// One operator. Has no default, so that a table with a hole does not compile.
template <class Args>
class Op {
 public:
  using Function = void (*)(Stream&, const Args&);
  constexpr Op(Function function) : function_(function) {}  // NOLINT: a table of functions reads as one
  void operator()(Stream& stream, const Args& args) const {
    check(args);
    function_(stream, args);
  }

 private:
  Function function_;
};

// A matrix from a checkpoint: one or several parts stacked by rows, which may differ in their encodings.
struct MatrixSource {
  std::span<const MatrixPart> parts;
  DType activation = DType::f32;
};

struct Ops {
  // The activations that this backend works in when matrices are stored in this format (f32, bf16 or f16).
  DType (*activation)(DType stored);
  // Lays a matrix out for this backend. Reads the source once; it may be unmapped afterwards.
  Result<WeightPtr> (*prepare)(Device&, const MatrixSource&);

  std::int64_t (*kv_block_bytes)(const KvSpec&);
  // Errors name what this backend cannot do: a head size, a cache format.
  Result<> (*supports)(const KvSpec&, int q_heads);
  // Everything that attention allocates. Error: not enough memory.
  Result<std::unique_ptr<AttentionPlan>> (*make_attention_plan)(Device&, const AttentionLimits&);
  void (*plan_attention)(Stream&, const AttentionShape&, AttentionPlan&);
  // Room for sample() of at most `rows` rows of `vocab` logits. Error: not enough memory.
  Result<> (*reserve_sampling)(Device&, std::int64_t rows, std::int64_t vocab);

  Op<EmbedArgs> embed;
  Op<AddNormArgs> add_norm;
  Op<MatmulArgs> matmul;
  Op<ActivateArgs> activate;
  Op<KeepTailArgs> keep_tail;
  Op<ScaleRowsArgs> scale_rows;
  Op<ClampArgs> clamp;
  Op<RouteArgs> route;
  Op<GroupedMatmulArgs> grouped_matmul;
  Op<CombineArgs> combine;
  Op<AddRowsArgs> add_rows;
  Op<AnglesArgs> angles;
  Op<QkvStoreArgs> qkv_store;
  Op<HeadMatmulArgs> head_matmul;
  Op<LatentStoreArgs> latent_store;
  Op<ChooseTokensArgs> choose_tokens;
  Op<AttentionArgs> attention;
  Op<TurnEndsArgs> turn_ends;
  Op<StoreRowsArgs> store_rows;
  Op<GateArgs> gate;
  Op<ConvArgs> causal_conv;
  Op<GatedDeltaArgs> gated_delta;
  Op<ScanArgs> scan;
  Op<ChannelScanArgs> channel_scan;
  Op<WkvArgs> wkv;
  Op<CompressArgs> compress;
  Op<CollapseStreamsArgs> collapse_streams;
  Op<ExpandStreamsArgs> expand_streams;
  Op<PredictStreamsArgs> predict_streams;
  Op<CorrectStreamsArgs> correct_streams;
  Op<MatchSizeArgs> match_size;
  Op<GatherRowsArgs> gather_rows;
  Op<PoolArgs> pool;
  Op<PutSampledArgs> put_sampled;
  Op<ScaleLogitsArgs> scale_logits;
  Op<SampleArgs> sample;
};

// A device, its operators and a stream to run them on: all that the rooms above know of the hardware.
struct Backend {
  std::string_view name;
  const Ops& ops;
  std::unique_ptr<Device> device;
  std::unique_ptr<Stream> stream;
};

}  // namespace octavo
