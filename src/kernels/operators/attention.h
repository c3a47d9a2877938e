// Operators of attention: rotary embedding, what the KV cache stores, and reading it.
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

// Rotary embedding (Su et al., RoFormer, 2021): the first rotary_dim elements of a head are rotated by the
// angles of its token. Pairs are (i, i + rotary_dim/2), or (2i, 2i + 1) when interleaved. rotary_dim 0: none.
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
  bool norm_turned = false;  // rms norms of each head come after the rotation
  Norm v_norm = {};          // of the values of each head, weight [head_dim]
  bool stores = true;        // false: qkv is queries alone, and the cache is left as it is
  Rope rope = {};
  View slots;     // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;  // gives kv_heads and head_dim
  View q_out;     // act [n, q_heads, head_dim]
};

// The products of each head with its own matrix: y[i, h] = x[i, h] * w_h^T, w_h being rows
// [h * rows, (h + 1) * rows) of w.
struct HeadMatmulArgs {
  View x;           // w.activation() [m, heads, cols], heads and rows may have gaps between them
  const Weight& w;  // plain [heads * rows, cols], rows a multiple of kHeadRows, cols at most kMaxLatentDim
  View y;           // w.activation() [m, heads, rows], likewise
};
constexpr int kHeadRows = 32;
constexpr int kMaxLatentDim = 1024;

// What latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) keeps of a token, and the part of its queries that
// is rotated. A token has one key head: a latent of `cache.spec.values_in_keys` numbers, which is normalised
// and is also its value, then the numbers that are rotated, then an indexer's as they are. Of each head of q
// as many last numbers are rotated, and go to the end of the same head of q_out, whose beginning does not
// change.
struct LatentStoreArgs {
  View kv;               // f32 [n, score_dim]
  View index_keys = {};  // act [n, index_dim]; with index_dim
  Norm norm;             // weight [values_in_keys]
  Rope rope;             // rotary_dim: score_dim - values_in_keys
  View slots;            // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;         // of one head
  View q;                // act [n, heads, any]
  View q_out;            // act [n, heads, score_dim]
};

// Which tokens a query of sparse attention sees (DeepSeek-AI, "DeepSeek-V3.2", 2025): of those up to its own
// the `chosen.size(1)` of greatest score, equal ones by position. The score of token t, whose index key is
// k_t, is the sum over heads, ascending, of weights[h] * max(0, q_h k_t). Or which entries, where these stand
// for several tokens (KvSpec::rate): of those whose tokens are all up to its own.
struct ChooseTokensArgs {
  View q;         // act [n, heads, index_dim], heads at most kMaxIndexHeads
  View weights;   // f32 [n, heads]
  KvLayer cache;  // of one head
  const AttentionPlan& plan;
  View chosen;  // i32 [n, most]: positions, ascending; behind the last of fewer kNoToken
};
constexpr int kMaxIndexHeads = 256;
constexpr std::int32_t kNoToken = std::numeric_limits<std::int32_t>::max();

// Attention of each query over its sequence's cached tokens, read from the pages: causal, up to and including
// its own token; else all of them.
struct AttentionArgs {
  View q;  // act [n, q_heads, score_dim]
  KvLayer cache;
  const AttentionPlan& plan;
  float scale = 1;     // > 0
  bool causal = true;  // as the plan's
  // > 0: a query sees the last `window` tokens, itself included, and, if not causal, as many after it; the
  // plan's, if it has one.
  int window = 0;
  // > 0: tokens of a chunk; a query sees no tokens of earlier chunks. The first chunk begins at position 0.
  // Causal, with window = chunk.
  int chunk = 0;
  float soft_cap = 0;  // > 0: scores become cap * tanh(score / cap)
  // f32 [q_heads]; optional: scores grow by it for each token that a key is further on (Press et al.,
  // "Train Short, Test Long", 2021). Without soft_cap.
  View slopes = {};
  // f32 [q_heads, 2 * most + 1]; optional: scores grow by element most + distance, distance = position of the
  // key - position of the query, clamped to [-most, most] (Raffel et al., "Exploring the Limits of Transfer
  // Learning", 2020). Without soft_cap.
  View distance_bias = {};
  View sinks =
      {};  // f32 [q_heads]: a score per head that takes its share of the softmax and has no value; optional
  View chosen = {};  // as ChooseTokensArgs makes it: a query sees these tokens alone; optional. With causal
  // Of caches with KvSpec::shared_rows: a query sees entries of another such cache, too, whose tokens are all
  // up to its own, or of these the chosen ones. Optional.
  KvLayer entries = {};
  const AttentionPlan* entry_plan = nullptr;
  View out;  // act [n, q_heads * value_dim]
};

// Rotates the last numbers of each head, two for each of `frequencies`, by the angles of its token
// (AnglesArgs), or `back`. Pairs are neighbours. Heads are normalised before, each alone.
struct TurnEndsArgs {
  View x;            // act [n, heads, dim], in place
  Norm norm = {};    // weight [dim]; kind none: as they are
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;   // of cos and sin
  bool back = false;
};

// Rows to a cache with KvSpec::shared_rows, each a token's, from number `first` of its row there on:
// normalised, then their ends rotated as in TurnEndsArgs. Of entries that stand for several tokens, those
// alone whose token is the last of them, and they are rotated by the angles of the first.
struct StoreRowsArgs {
  View x;            // f32 [n, dim]
  Norm norm;         // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View slots;  // i64 [n]: of tokens: block id * block_size + offset in the block
  KvLayer cache;
  std::int64_t first = 0;
};

}  // namespace octavo
