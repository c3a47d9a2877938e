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
  by_head,         // the queries of the first key head, this and its value, then those of the second ...
  values_by_head,  // all queries, then the first key and its value, the second ...
};

// Norm of queries and keys.
enum class QkNorm : std::uint8_t {
  none,
  shared,     // each head separately, one weight [head_dim] for all
  per_head,   // each head separately, with a weight for each head
  whole_row,  // all heads of a token together
};

// Relative position bias: each head adds a learned number to a score, by the distance between query and key
// (AttentionArgs::distance_bias). All layers share one table [buckets, heads]. With attention to both
// sides, each side has half of the buckets. The first half of a side's buckets are for one distance each,
// the others for ranges that grow up to `furthest`.
struct DistanceBias {
  int buckets = 0;  // 0: no distance bias
  int furthest = 0;
};

struct AttentionBiases {
  bool qkv = false;
  bool k = true;  // with qkv: keys have one, too
  bool out = false;
};

struct HeadNorms {
  QkNorm qk_kind = QkNorm::none;
  NormSpec qk = {};
  bool qk_after_rope = false;  // the norm comes after the rotation, else before it
  NormSpec v = {};             // norm of each head's values; its weight is not stored
};

// Which tokens a token sees.
struct AttentionMask {
  bool causal = true;  // no later tokens
  // Window in tokens, if not 0: the query and those before it and, if not causal, the same number after it.
  int window = 0;
  int chunk = 0;             // AttentionArgs::chunk
  bool local = false;        // image encoders: a patch sees only the patches of its ImageInput::window
  bool whole_images = true;  // the tokens of an image see all of it, with MediaSpec::whole_images
};

struct AttentionScores {
  float scale = 1;
  float soft_cap = 0;  // limit, if not 0
  bool sinks = false;  // each head has a learned score that takes its share of the softmax and has no value
  std::vector<float> slopes = {};  // AttentionArgs::slopes, if not empty
  DistanceBias distance_bias = {};
  bool temperature = false;  // ModelSpec::temperature applies
};

struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int value_dim = 0;  // width of a head's values, if narrower than its keys (zeros follow); 0: equal
  int input_dim = 0;  // input width of queries, keys and values, if it differs from the network's
  AttentionBiases biases = {};
  HeadNorms norms = {};
  AttentionMask mask = {};
  AttentionScores scores = {};
  int rope = -1;  // index into ModelSpec::ropes; -1: none
  // Matrices and norms are stored so that each half of a head is rotated alone, as a head of half the size.
  bool rope_by_halves = false;
  // The output of each head is multiplied by the sigmoid of a gate, whose rows follow each head's queries, or
  // are the fourth matrix of AttentionNames::qkv.
  bool output_gate = false;
  bool head_gate = false;        // the output of each head is multiplied by the sigmoid of one number
  float clip = 0;                // if not 0, queries, keys and values are clipped to [-clip, clip]
  bool keys_are_values = false;  // one projection gives both, before their norms
  int source = -1;               // the layer whose keys and values are read; -1: this layer's
  // Width of the latent from which queries are made (multi-matrix factorization attention: Step-3, 2025),
  // which has q_latent_norm; 0: queries are made of the input.
  int q_rank = 0;
  NormSpec q_latent_norm = {};

  int q_dim() const { return q_heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
  int stored_value_dim() const { return value_dim > 0 ? value_dim : head_dim; }
  int qkv_dim() const { return q_dim() + 2 * kv_dim(); }
};

std::unique_ptr<Block> make_block(const Attention& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
