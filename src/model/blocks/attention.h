// Spec and tensor names of attention.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/norm_spec.h"

namespace octavo {

class Block;
class Namer;

// Order of the rows of a fused query/key/value matrix.
enum class QkvOrder : std::uint8_t {
  by_kind,  // all queries, all keys, all values
  by_head,  // queries of the first KV head, its key, its value; then the same for the second KV head, and so
            // on
  values_by_head,  // all queries; then the first key and its value, the second key and its value, and so on
};

// How queries and keys are normalised.
enum class QkNorm : std::uint8_t {
  none,
  shared,     // each head separately, with one weight [head_dim] for all heads
  per_head,   // each head separately, with a separate weight
  whole_row,  // all heads of a token together
};

// Relative position bias: each head adds a learned number to a score, selected by the distance between query
// and key (AttentionArgs::distance_bias). All layers share one table [buckets, heads]. If tokens also see
// later tokens, each direction has half of the buckets. In each direction, the first half of the buckets are
// for single distances; the others are for growing ranges, up to `furthest`.
struct DistanceBias {
  int buckets = 0;  // 0: no distance bias
  int furthest = 0;
};

struct AttentionBiases {
  bool qkv = false;
  bool k = true;  // whether keys have a bias, too, if `qkv` is set
  bool out = false;
};

struct HeadNorms {
  QkNorm qk_kind = QkNorm::none;
  NormSpec qk = {};
  bool qk_after_rope = false;  // whether the norm of queries and keys follows the rotation; otherwise it
                               // precedes the rotation
  NormSpec v = {};             // norm of the values of each head, without stored weight
};

// Which tokens a query sees.
struct AttentionMask {
  bool causal = true;
  // Window in tokens; 0: no window. A query sees itself and the window - 1 tokens before it; if not causal,
  // also window - 1 tokens after it.
  int window = 0;
  int chunk = 0;             // see AttentionArgs::chunk
  bool local = false;        // image encoders: a patch sees only the patches of its window
                             // (ImageInput::window)
  bool whole_images = true;  // with MediaSpec::whole_images: whether tokens of an image see the complete
                             // image
};

struct AttentionScores {
  float scale = 1;
  float soft_cap = 0;  // cap of the scores (c * tanh(x / c)); 0: no cap
  bool sinks = false;  // attention sinks: whether each head has a learned score that takes part in the
                       // softmax but has no value
  std::vector<float> slopes = {};  // see AttentionArgs::slopes; empty: no ALiBi
  DistanceBias distance_bias = {};
  bool temperature = false;  // whether scores are scaled by ModelSpec::temperature
};

struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int value_dim = 0;  // width of a head's values, if less than that of its keys (values are padded with
                      // zeros); 0: equal
  int input_dim = 0;  // input width of the query, key and value projections; 0: width of the network
  AttentionBiases biases = {};
  HeadNorms norms = {};
  AttentionMask mask = {};
  AttentionScores scores = {};
  int rope = -1;  // index into ModelSpec::ropes; -1: no rotation
  // Whether each half of a head is rotated like a separate head of half the size; matrices and norms are
  // stored in this order.
  bool rope_by_halves = false;
  // Whether the output of each head is multiplied by the sigmoid of a gate vector. The rows of the gate
  // follow each head's queries, or are the fourth matrix of AttentionNames::qkv.
  bool output_gate = false;
  bool head_gate = false;        // whether the output of each head is multiplied by the sigmoid of one number
  float clip = 0;                // queries, keys and values are clipped to [-clip, clip]; 0: no clipping
  bool keys_are_values = false;  // whether one projection computes keys and values, whose norms may differ
  int source = -1;               // index of the layer whose keys and values are read; -1: this layer
  // Width of the latent from which queries are computed, after q_latent_norm (multi-matrix factorization
  // attention: Step-3, 2025); 0: queries are computed from the input.
  int q_rank = 0;
  NormSpec q_latent_norm = {};

  int q_dim() const { return q_heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
  int stored_value_dim() const { return value_dim > 0 ? value_dim : head_dim; }
  int qkv_dim() const { return q_dim() + 2 * kv_dim(); }
};

std::unique_ptr<Block> make_block(const Attention& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
