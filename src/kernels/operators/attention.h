// Operators of attention: rotary embedding, KV cache writes, and attention itself.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention_plan.h"
#include "kernels/operators/rows.h"

namespace octavo {

// cos and sin, times `scale`, of the angles of rotary embeddings: position * frequency in single precision,
// as in training.
struct AnglesArgs {
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View cos;  // f32 [n, pairs]
  View sin;
};

// Rotary embedding (Su et al., RoFormer, 2021): rotates the first rotary_dim elements of a head by the angles
// of its token. Pairs are (i, i + rotary_dim/2), or (2i, 2i + 1) when interleaved. If rotary_dim is 0, heads
// are not rotated.
struct Rope {
  View cos = {};  // f32 [n, rotary_dim / 2]
  View sin = {};
  int rotary_dim = 0;
  bool interleaved = false;
};

// Splits the fused projection, normalises and rotates queries and keys, and writes queries to q_out and keys
// and values to the paged cache.
struct QkvStoreArgs {
  View qkv;  // act [n, (q_heads + 2 * kv_heads) * head_dim]: all queries, all keys, all values
  int q_heads = 0;
  // Weight [head_dim], or [heads, head_dim] with a weight per head; each head is normalised separately. With
  // norm_whole_row the weight is [heads * head_dim], over the whole row.
  Norm q_norm = {};
  Norm k_norm = {};
  bool norm_whole_row = false;
  bool norm_turned = false;  // rms norms of each head follow the rotation
  Norm v_norm = {};          // norm of each head's values, weight [head_dim]
  bool stores = true;        // false: qkv holds only queries, and the cache is not written
  Rope rope = {};
  View slots;     // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;  // gives kv_heads and head_dim
  View q_out;     // act [n, q_heads, head_dim]
};

// Multiplies each head by its matrix: y[i, h] = x[i, h] * w_h^T. w_h is rows [h * rows, (h + 1) * rows) of w.
struct HeadMatmulArgs {
  View x;           // w.activation() [m, heads, cols], heads and rows may have gaps between them
  const Weight& w;  // plain [heads * rows, cols], rows a multiple of kHeadRows, cols at most kMaxLatentDim
  View y;           // w.activation() [m, heads, rows], same gaps allowed
};
constexpr int kHeadRows = 32;
constexpr int kMaxLatentDim = 1024;

// Stores the keys of latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) and rotates part of its queries. A
// token has one key head: a normalised latent of `cache.spec.values_in_keys` numbers, which is also the
// value; then the rotated numbers; then the unchanged keys of an indexer. The last rotary_dim numbers of each
// head of q are rotated and written to the end of the same head of q_out. The beginning of that head does not
// change.
struct LatentStoreArgs {
  View kv;               // f32 [n, score_dim]
  View index_keys = {};  // act [n, index_dim]; with index_dim
  Norm norm;             // weight [values_in_keys]
  Rope rope;             // rotary_dim: score_dim - values_in_keys
  View slots;            // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;         // cache with one head
  View q;                // act [n, heads, any]
  View q_out;            // act [n, heads, score_dim]
};

// Chooses the tokens that a query of sparse attention sees (DeepSeek-AI, "DeepSeek-V3.2", 2025): among tokens
// up to its own, the `chosen.size(1)` with the greatest scores; ties go by position. Token t with index key
// k_t has the score: sum over heads, ascending, of weights[h] * max(0, q_h k_t). With KvSpec::rate > 1 it
// chooses entries instead, among those whose tokens are all up to its own.
struct ChooseTokensArgs {
  View q;         // act [n, heads, index_dim], heads at most kMaxIndexHeads
  View weights;   // f32 [n, heads]
  KvLayer cache;  // cache with one head
  const AttentionPlan& plan;
  View chosen;  // i32 [n, most]: positions, ascending; unused ones are kNoToken
};
constexpr int kMaxIndexHeads = 256;
constexpr std::int32_t kNoToken = std::numeric_limits<std::int32_t>::max();

// Attention of each query over its sequence's cached tokens, read from the pages. Causal: tokens up to and
// including its own; otherwise all.
struct AttentionArgs {
  View q;  // act [n, q_heads, score_dim]
  KvLayer cache;
  const AttentionPlan& plan;
  float scale = 1;     // > 0
  bool causal = true;  // must equal the plan's
  // > 0: a query sees the last `window` tokens, including itself. If not causal, it also sees `window` tokens
  // after it. Equals the plan's window if the plan has one.
  int window = 0;
  // > 0: tokens of a chunk; a query sees no tokens of earlier chunks. The first chunk begins at position 0.
  // Requires causal and window = chunk.
  int chunk = 0;
  float soft_cap = 0;  // > 0: scores become cap * tanh(score / cap)
  // f32 [q_heads]; optional (ALiBi): the score grows by this slope per token of distance (Press et al.,
  // "Train Short, Test Long", 2021). Not with soft_cap.
  View slopes = {};
  // f32 [q_heads, 2 * most + 1]; optional: relative position bias (Raffel et al., "Exploring the Limits of
  // Transfer Learning", 2020). Element most + distance is added to the score. distance = position of the key
  // - position of the query, clamped to [-most, most]. Not with soft_cap.
  View distance_bias = {};
  View sinks = {};  // f32 [q_heads]; optional: a sink score per head, part of the softmax sum without a value
  View chosen = {};  // from ChooseTokensArgs: a query sees only these tokens; optional. Requires causal
  // Optional, with KvSpec::shared_rows: a second such cache. A query also sees its entries whose tokens are
  // all up to its own, or only the chosen ones of them.
  KvLayer entries = {};
  const AttentionPlan* entry_plan = nullptr;
  View out;  // act [n, q_heads * value_dim]
};

// Rotates the end of each head by the angles of its token (AnglesArgs), or `back`. The end has two numbers
// for each of `frequencies`, and pairs are neighbours. Each head is normalised separately before.
struct TurnEndsArgs {
  View x;            // act [n, heads, dim], in place
  Norm norm = {};    // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;   // factor of cos and sin
  bool back = false;
};

// Writes one row per token to a cache with KvSpec::shared_rows, from number `first` of the cached row. Rows
// are normalised, then their ends are rotated as in TurnEndsArgs. If an entry covers several tokens, only the
// row of its last token is written, rotated by the angles of its first token.
struct StoreRowsArgs {
  View x;            // f32 [n, dim]
  Norm norm;         // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View slots;  // i64 [n]: block id * block_size + offset in the block, per token
  KvLayer cache;
  std::int64_t first = 0;
};

}  // namespace octavo
