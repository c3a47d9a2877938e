// Configuration (spec) and tensor names of grouped-query attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/norm_spec.h"

namespace octavo {

// Order of rows in a fused matrix of queries, keys and values.
enum class QkvOrder : std::uint8_t {
  by_kind,         // all queries, all keys, all values
  by_head,         // the queries of KV head 0, its key, its value; the same for KV head 1; and so on
  values_by_head,  // all queries; the key and the value of KV head 0; of KV head 1; and so on
  by_chunk,        // as by_head, for AttentionNames::qkv_chunks groups of KV heads
  gates_first,     // all gates (Attention::output_gate), all queries, all keys, all values
};

// Norm of queries and keys.
enum class QkNorm : std::uint8_t {
  none,
  shared,     // normalises each head; all heads share one weight [head_dim]
  per_head,   // normalises each head; each head has a weight
  whole_row,  // normalises all heads of a token together
};

// Relative position bias: each head adds a learned number to a score. The distance between query and key
// selects the number (AttentionArgs::distance_bias). All layers share one table [buckets, heads]. If
// attention is not causal, each direction has half of the buckets. In each direction, the first half of the
// buckets is for single distances, and the second half is for growing ranges of distances, up to `furthest`.
struct DistanceBias {
  int buckets = 0;  // 0: no distance bias
  int furthest = 0;
};

struct AttentionBiases {
  bool qkv = false;
  bool k = true;  // keys have a bias, too; only used if `qkv` is set
  bool out = false;
  bool gate = false;  // Attention::output_gate has a bias per head; not together with `qkv`
};

struct HeadNorms {
  QkNorm qk_kind = QkNorm::none;
  NormSpec qk = {};
  bool q_plain = false;  // the norm of queries has no stored weight
  bool k_only = false;   // only keys are normalised
  // true: the norm of queries and keys follows RoPE; false: RoPE follows the norm
  bool qk_after_rope = false;
  NormSpec v = {};             // norm of each head's values; has no stored weight
  NormSpec out = {};           // norm over the gated outputs of all heads; has no stored weight
  // If not 0, AttentionNames::q_norm is the full name of a vector with a number s for each element of each
  // query. The weight of the queries' norm is (square * s)^2. The keys' norm has no stored weight.
  float square = 0;
};

// Decides which tokens a query sees.
struct AttentionMask {
  bool causal = true;
  // Sliding window in tokens; 0: no window. A query sees itself and the window - 1 tokens before it. If
  // attention is not causal, it also sees the window - 1 tokens after it.
  int window = 0;
  int chunk = 0;             // see AttentionArgs::chunk
  bool local = false;  // image encoders: a patch sees only the patches in its window (ImageInput::window)
  // If not 0, the queries of each KV head see only this number of blocks of tokens, which SparseAttention
  // chooses.
  int chosen_blocks = 0;
  int block_tokens = 0;      // length of these blocks
  bool whole_images = true;  // with MediaSpec::whole_images: tokens of an image see the complete image
};

struct AttentionScores {
  float scale = 1;
  float soft_cap = 0;  // c in c * tanh(x / c), applied to scores; 0: no cap
  // attention sinks: each head has a learned score that takes part in the softmax but has no value
  bool sinks = false;
  std::vector<float> slopes = {};  // see AttentionArgs::slopes; empty: no ALiBi
  // If not 0, a score falls by the slope times the square root of the distance, instead of the distance. The
  // number is the length of the longest sequence.
  int root_distances = 0;
  DistanceBias distance_bias = {};
  bool temperature = false;  // scores are scaled by ModelSpec::temperature
  // Number of keys in the checkpoint that every query sees. They have the norm of keys and no RoPE.
  int fixed_keys = 0;
  bool fixed_values = false;  // the fixed keys have values; otherwise their values are 0
};

struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  // width of a head's values if keys are wider (then values are padded with zeros); 0: equal to head_dim
  int value_dim = 0;
  int input_dim = 0;  // input width of the query, key and value projections; 0: ModelSpec::dim
  AttentionBiases biases = {};
  HeadNorms norms = {};
  AttentionMask mask = {};
  AttentionScores scores = {};
  int rope = -1;  // index into ModelSpec::ropes; -1: no RoPE
  // RoPE rotates each half of a head as if it were a separate head of half the size. The block reorders the
  // rows of matrices and norms, so that rotating complete heads has this effect.
  bool rope_by_halves = false;
  // The output of each head is multiplied by `gate` of a vector. The vector's rows follow each head's
  // queries, or are the fourth matrix in AttentionNames::qkv.
  bool output_gate = false;
  bool head_gate = false;                 // the output of each head is multiplied by `gate` of one number
  Activation gate = Activation::sigmoid;  // of a head gate: sigmoid or softplus
  // If not 0, an element s of AttentionNames::gate_scale multiplies a row of the gates' matrix by
  // (gate_square * s)^2. The matrix is then the fourth one in AttentionNames::qkv.
  float gate_square = 0;
  float clip = 0;                // queries, keys and values are clipped to [-clip, clip]; 0: no clipping
  bool keys_are_values = false;  // one projection computes keys and values; their norms may differ
  int source = -1;               // index of the layer whose cached keys and values are read; -1: this layer
  // If not 0, queries are computed from a latent of this width, after q_latent_norm (multi-matrix
  // factorization attention: Step-3, 2025).
  int q_rank = 0;
  NormSpec q_latent_norm = {};

  int q_dim() const { return q_heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
  int stored_value_dim() const { return value_dim > 0 ? value_dim : head_dim; }
  int qkv_dim() const { return q_dim() + 2 * kv_dim(); }
};

}  // namespace octavo
