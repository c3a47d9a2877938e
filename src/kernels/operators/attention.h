// Operators of attention: rotary embedding, KV cache writes, and attention itself.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels/attention_plan.h"
#include "kernels/operators/rows.h"

namespace octavo {

// Computes cos and sin of the angles of rotary embeddings, times `scale`. An angle is position * frequency,
// in single precision as in training.
struct AnglesArgs {
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View cos;  // f32 [n, pairs]
  View sin;
};

// Rotary embedding (RoPE; Su et al., "RoFormer", 2021): rotates the first rotary_dim elements of a head by
// the angles of its token. The rotated pairs are (i, i + rotary_dim / 2) or, if interleaved, (2i, 2i + 1).
// rotary_dim 0: no rotation.
struct Rope {
  View cos = {};  // f32 [n, rotary_dim / 2]
  View sin = {};
  int rotary_dim = 0;
  bool interleaved = false;
};

// Splits the fused QKV projection and normalises and rotates queries and keys. Writes queries to q_out, and
// keys and values to the paged KV cache.
struct QkvStoreArgs {
  View qkv;  // act [n, (q_heads + 2 * kv_heads) * head_dim]: all queries, all keys, all values
  int q_heads = 0;
  // The weight of q_norm and k_norm is [head_dim], or [heads, head_dim] if weights differ by head; each
  // head is normalised separately. With norm_whole_row, the weight is [heads * head_dim], and all heads of
  // a token are normalised as one row.
  Norm q_norm = {};
  Norm k_norm = {};
  bool norm_whole_row = false;
  bool norm_rotated = false;  // true: heads are normalised (rms) after the rotation
  Norm v_norm = {};          // norm of the values of each head, weight [head_dim]
  bool stores = true;        // false: qkv contains only queries, and the cache is not written
  Rope rope = {};
  View slots;     // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;  // its spec has kv_heads and head_dim
  View q_out;     // act [n, q_heads, head_dim]
};

// Multiplies each head by its matrix: y[i, h] = x[i, h] * w_h^T. w_h is rows [h * rows, (h + 1) * rows) of w.
struct HeadMatmulArgs {
  View x;  // w.activation() [m, heads, cols]; gaps between heads and rows are allowed
  // not quantised, [heads * rows, cols]; rows is a multiple of kHeadRows, cols at most kMaxLatentDim
  const Weight& w;
  View y;  // w.activation() [m, heads, rows]; gaps between heads and rows are allowed
};
constexpr int kHeadRows = 32;
constexpr int kMaxLatentDim = 1024;

// Stores the keys of multi-head latent attention (MLA; DeepSeek-AI, "DeepSeek-V2", 2024) and rotates part of
// the queries. Each token has one key: first a normalised latent of `cache.spec.values_in_keys` numbers,
// which is also the value; then the rotated numbers; then the key for the indexer, which is not changed. In
// each head of q, the last rotary_dim numbers are rotated and written to the end of the same head of q_out.
// The other numbers of q are not copied.
struct LatentStoreArgs {
  View kv;               // f32 [n, score_dim]
  View index_keys = {};  // required if the cache has index_dim > 0
  Norm norm;             // weight [values_in_keys]
  Rope rope;             // rotary_dim is score_dim - values_in_keys
  View slots;            // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;         // cache with one KV head
  View q;                // act [n, heads, any dim]
  View q_out;            // act [n, heads, score_dim]
};

// Selects the tokens that a query of sparse attention sees (DeepSeek-AI, "DeepSeek-V3.2", 2025). The
// selected tokens are the chosen.size(1) tokens with the greatest scores, among the tokens up to and
// including the query's own token. If scores are equal, the lower position wins.
//
// The score of token t with index key k_t is the sum over heads, ascending, of weights[h] * max(0, q_h k_t).
// If KvSpec::rate > 1, compressed entries are selected, but only entries that contain no token after the
// query's own token.
struct ChooseTokensArgs {
  View q;         // act [n, heads, index_dim], heads at most kMaxIndexHeads
  View weights;   // f32 [n, heads]
  KvLayer cache;  // cache with one KV head
  const AttentionPlan& plan;
  View chosen;  // i32 [n, most]: positions in ascending order; unused elements are kNoToken
};
// Selects blocks of `block` consecutive tokens that the queries of each KV head see (MiniMax-M3, 2026): the
// block of the query's own token, the `local` - 1 blocks before it, and the blocks with the greatest scores,
// chosen.size(2) blocks together. The score of a block is the greatest product of the head's index query with
// an index key of the block's tokens, up to and including the query's own token. If scores are equal, the
// lower block wins.
struct ChooseBlocksArgs {
  View q;         // act [n, heads, dim]
  KvLayer cache;  // cache with one KV head, whose keys are the index keys
  const AttentionPlan& plan;
  int block = 0;
  int local = 1;
  View
      chosen;  // i32 [n, heads, most], most >= local: blocks in ascending order; unused elements are kNoToken
};
constexpr int kMaxIndexHeads = 256;
constexpr std::int32_t kNoToken = std::numeric_limits<std::int32_t>::max();

// Attention of each query to the tokens of its sequence, whose keys and values are in KV blocks. If causal,
// a query sees the tokens up to and including its own token; otherwise it sees all tokens.
struct AttentionArgs {
  View q;  // act [n, q_heads, score_dim]
  KvLayer cache;
  const AttentionPlan& plan;
  float scale = 1;     // > 0
  bool causal = true;  // must equal AttentionLimits::causal
  // If window > 0, a query sees the last `window` tokens, including its own. If not causal, the query also
  // sees the next `window` tokens. If the plan has a window (AttentionLimits), the two windows must be
  // equal.
  int window = 0;
  // If chunk > 0, the sequence is divided into chunks of `chunk` tokens from position 0, and a query sees
  // no tokens of earlier chunks. Requires causal and window = chunk.
  int chunk = 0;
  float soft_cap = 0;  // if > 0, scores become cap * tanh(score / cap)
  // Optional, f32 [q_heads]: ALiBi slopes (Press et al., "Train Short, Test Long", 2021). The score grows
  // by the slope for each token that the key is closer to the query. Not supported with soft_cap.
  View slopes = {};
  // Optional, f32 [q_heads, 2 * most + 1]: relative position bias (Raffel et al., "Exploring the Limits of
  // Transfer Learning", 2020). Element most + distance is added to the score, where distance is the
  // position of the key minus the position of the query, clamped to [-most, most]. Not supported with
  // soft_cap.
  View distance_bias = {};
  // Optional, f32 [q_heads]: attention sinks. The sink of a head is one more score in the softmax sum; it
  // has no value.
  View sinks = {};
  // Optional, f32 [m, kv_heads, score_dim] and f32 [m, kv_heads, value_dim]: keys and values that every query
  // sees, in addition to those of its sequence. m is at most kMaxFixedKeys. Not supported with slopes,
  // distance_bias, soft_cap and KvSpec::shared_rows.
  View fixed_keys = {};
  View fixed_values = {};
  // Optional: output of ChooseTokensArgs or ChooseBlocksArgs. A query sees only the chosen tokens. An element
  // i chooses the tokens [i * chosen_tokens, (i + 1) * chosen_tokens). Requires causal.
  View chosen = {};
  int chosen_tokens = 1;
  // Optional, requires KvSpec::shared_rows: a second cache, of compressed entries. A query also sees the
  // entries that contain no token after its own token or, with `chosen`, only the chosen entries.
  KvLayer entries = {};
  const AttentionPlan* entry_plan = nullptr;
  View out;  // act [n, q_heads * value_dim]
};

constexpr int kMaxFixedKeys = 512;

// Rotates the end of each head by the angles of its token (AnglesArgs), or by the negative angles if `back`
// is true. The end consists of frequencies.size(0) pairs of adjacent numbers. Each head is first normalised
// separately.
struct RotateEndsArgs {
  View x;            // act [n, heads, dim], in place
  Norm norm = {};    // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;   // factor of cos and sin
  bool back = false;
};

// Writes one row per token to a cache with KvSpec::shared_rows, starting at element `first` of the cached
// row. Rows are first normalised, and their ends are rotated as in RotateEndsArgs. If an entry covers several
// tokens, only the row of the entry's last token is written, rotated by the angles of the entry's first
// token.
struct StoreRowsArgs {
  View x;            // f32 [n, dim]
  Norm norm;         // weight [dim]
  View positions;    // i32 [n]
  View frequencies;  // f32 [pairs]
  float scale = 1;
  View slots;  // i64 [n]: block id * block_size + offset in the block
  KvLayer cache;
  std::int64_t first = 0;
};

}  // namespace octavo
