// Operators of attention: rotary embedding, KV cache writes, and attention itself.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention_plan.h"
#include "kernels/operators/rows.h"

namespace octavo {

// Computes cos and sin of the angles of rotary embeddings, times `scale`. angle = position * frequency in
// single precision, as in training.
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

// Splits the fused projection, normalises and rotates queries and keys, and writes the queries to q_out and
// the keys and values to the paged cache.
struct QkvStoreArgs {
  View qkv;  // act [n, (q_heads + 2 * kv_heads) * head_dim]: all queries, all keys, all values
  int q_heads = 0;
  // weight [head_dim], or [heads, head_dim] with a weight per head: each head is normalised separately. With
  // norm_whole_row, weight [heads * head_dim]: the full row is normalised.
  Norm q_norm = {};
  Norm k_norm = {};
  bool norm_whole_row = false;
  bool norm_turned = false;  // whether rms norms of heads come after the rotation
  Norm v_norm = {};          // norm of the values of each head, weight [head_dim]
  bool stores = true;        // false: qkv contains only queries, and the cache is not written
  Rope rope = {};
  View slots;     // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;  // its spec gives kv_heads and head_dim
  View q_out;     // act [n, q_heads, head_dim]
};

// Multiplies each head by its matrix: y[i, h] = x[i, h] * w_h^T. w_h is rows [h * rows, (h + 1) * rows) of w.
struct HeadMatmulArgs {
  View x;           // w.activation() [m, heads, cols]; heads and rows need not be adjacent
  const Weight& w;  // plain [heads * rows, cols]; rows is a multiple of kHeadRows, cols at most kMaxLatentDim
  View y;           // w.activation() [m, heads, rows]; heads and rows need not be adjacent
};
constexpr int kHeadRows = 32;
constexpr int kMaxLatentDim = 1024;

// Stores the keys of latent attention (DeepSeek-AI, "DeepSeek-V2", 2024) and rotates part of its queries.
// Each token has one key head: a normalised latent of `cache.spec.values_in_keys` numbers, which is also the
// value; then the rotated numbers; then the unchanged keys of an indexer. In each head of q, the last
// rotary_dim numbers are rotated and written to the end of the same head of q_out. The other numbers of the
// head are not copied.
struct LatentStoreArgs {
  View kv;               // f32 [n, score_dim]
  View index_keys = {};  // required if the cache has index_dim > 0
  Norm norm;             // weight [values_in_keys]
  Rope rope;             // with rotary_dim = score_dim - values_in_keys
  View slots;            // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;         // cache with one head
  View q;                // act [n, heads, any dim]
  View q_out;            // act [n, heads, score_dim]
};

// Selects the tokens that a query of sparse attention sees (DeepSeek-AI, "DeepSeek-V3.2", 2025): of the
// tokens up to its own, the `chosen.size(1)` tokens with the greatest scores; of equal scores, the lower
// position wins. Token t with index key k_t has the score: sum over heads, ascending, of weights[h] * max(0,
// q_h k_t). With KvSpec::rate > 1, compressed entries are selected instead; an entry is eligible if all its
// tokens are up to the query's own.
struct ChooseTokensArgs {
  View q;         // act [n, heads, index_dim], heads at most kMaxIndexHeads
  View weights;   // f32 [n, heads]
  KvLayer cache;  // cache with one head
  const AttentionPlan& plan;
  View chosen;  // i32 [n, most]: positions in ascending order; unused elements are kNoToken
};
constexpr int kMaxIndexHeads = 256;
constexpr std::int32_t kNoToken = std::numeric_limits<std::int32_t>::max();

// Attention of each query to the cached tokens of its sequence, read from the KV blocks. If causal, a query
// sees the tokens up to and including its own; otherwise it sees all.
struct AttentionArgs {
  View q;  // act [n, q_heads, score_dim]
  KvLayer cache;
  const AttentionPlan& plan;
  float scale = 1;     // > 0
  bool causal = true;  // must equal the plan's value
  // If > 0: a query sees the last `window` tokens, including itself. If not causal, it also sees `window`
  // tokens after it. Equals the plan's window if the plan has one.
  int window = 0;
  // If > 0: size of a chunk in tokens. A query sees no tokens of earlier chunks. The first chunk begins at
  // position 0. Requires causal and window = chunk.
  int chunk = 0;
  float soft_cap = 0;  // if > 0, scores become cap * tanh(score / cap)
  // f32 [q_heads]; optional: ALiBi slopes (Press et al., "Train Short, Test Long", 2021). The score grows by
  // the slope for each token closer to the query. Not with soft_cap.
  View slopes = {};
  // f32 [q_heads, 2 * most + 1]; optional: relative position bias (Raffel et al., "Exploring the Limits of
  // Transfer Learning", 2020). Element most + distance is added to the score. distance = position of the key
  // - position of the query, clamped to [-most, most]. Not with soft_cap.
  View distance_bias = {};
  View sinks = {};   // f32 [q_heads]; optional: attention sink of each head, a score that is added to the
                     // softmax sum but has no value
  View chosen = {};  // output of ChooseTokensArgs; optional: a query sees only these tokens. Requires causal.
  // Optional, with KvSpec::shared_rows: a second cache, of compressed entries. A query also sees the entries
  // whose tokens are all up to its own or, with `chosen`, only the selected entries.
  KvLayer entries = {};
  const AttentionPlan* entry_plan = nullptr;
  View out;  // act [n, q_heads * value_dim]
};

// Rotates the end of each head by the angles of its token (AnglesArgs) or, with `back`, in the other
// direction. The end consists of one pair of neighbouring numbers per element of `frequencies`. Each head is
// first normalised separately.
struct TurnEndsArgs {
  View x;            // act [n, heads, dim], in place
  Norm norm = {};    // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;   // factor of cos and sin
  bool back = false;
};

// Writes one row per token to a cache with KvSpec::shared_rows, starting at element `first` of the cached
// row. Rows are first normalised, and their ends are rotated as in TurnEndsArgs. If an entry covers several
// tokens, only the row of its last token is written, rotated by the angles of the entry's first token.
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
