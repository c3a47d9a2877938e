// Attention.
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
  by_kind,         // all queries, all keys, all values
  by_head,         // queries of the first key head, its key, its value; then the same for the second key head
                   // ...
  values_by_head,  // all queries; then the first key and its value, the second ...
};

// How queries and keys are normalised.
enum class QkNorm : std::uint8_t {
  none,
  shared,     // each head separately, with one weight [head_dim] for all heads
  per_head,   // each head separately, each with its weight
  whole_row,  // all heads of a token together
};

// Relative position bias: each head adds to a score a learned number, selected by the distance between query
// and key (AttentionArgs::distance_bias). All layers share one table [buckets, heads]. If tokens also see
// later tokens, each direction has half of the buckets. The first half of a direction's buckets are for
// single distances; the others are for growing ranges, up to `furthest`.
struct DistanceBias {
  int buckets = 0;  // 0: no distance bias
  int furthest = 0;
};

struct AttentionBiases {
  bool qkv = false;
  bool k = true;  // with `qkv`: keys have a bias, too
  bool out = false;
};

struct HeadNorms {
  QkNorm qk_kind = QkNorm::none;
  NormSpec qk = {};
  bool qk_after_rope = false;  // true: the norm comes after the rotation; false: before it
  NormSpec v = {};             // norm of each head's values; it has no stored weight
};

// The tokens that a query sees.
struct AttentionMask {
  bool causal = true;  // Window in tokens; 0: none. A query sees the last `window` tokens, including itself;
                       // if not causal, it also sees `window` tokens after it.
  // Window in tokens; 0: none. A query sees itself and the window - 1 tokens before it; if not causal, also
  // window - 1 tokens after it.
  int window = 0;
  int chunk = 0;             // AttentionArgs::chunk
  bool local = false;        // image encoders: a patch sees only the patches of its window
                             // (ImageInput::window)
  bool whole_images = true;  // with MediaSpec::whole_images: tokens of an image see the whole image
};

struct AttentionScores {
  float scale = 1;
  float soft_cap = 0;  // limit of the scores; 0: none
  bool sinks = false;  // each head has a learned score that takes part in the softmax but has no value
  std::vector<float> slopes = {};  // AttentionArgs::slopes; empty: none
  DistanceBias distance_bias = {};
  bool temperature = false;  // true: scores are scaled by ModelSpec::temperature
};

struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int value_dim = 0;  // width of a head's values, if narrower than its keys (zeros are appended); 0: equal
  int input_dim = 0;  // input width of queries, keys and values; 0: the network's width
  AttentionBiases biases = {};
  HeadNorms norms = {};
  AttentionMask mask = {};
  AttentionScores scores = {};
  int rope = -1;  // index into ModelSpec::ropes; -1: none
  // Each half of a head is rotated like a separate head of half the size; matrices and norms are stored in
  // this order.
  bool rope_by_halves = false;
  // The output of each head is multiplied by the sigmoid of a gate vector. The gate's rows follow each head's
  // queries, or are the fourth matrix of AttentionNames::qkv.
  bool output_gate = false;
  bool head_gate = false;        // the output of each head is multiplied by the sigmoid of one number
  float clip = 0;                // limit: queries, keys and values are clipped to [-clip, clip]; 0: none
  bool keys_are_values = false;  // one projection gives keys and values; their norms may differ
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
