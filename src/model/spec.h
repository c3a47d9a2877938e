// What a network is, as plain data.
//
// A family's file turns config.json into a ModelSpec; everything else is derived from it: the tensors to load
// (slots.h), the layout of the KV cache (cache_layout.h), the forward pass (decoder.h), memory and cost
// (inspect.h). A family differs from another by numbers, places and activations, never by code.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/ops.h"

namespace octavo {

// Norms by kind: weight always, bias on request. weight_offset is added to the stored weight (Gemma stores w
// and multiplies by 1 + w).
struct NormSpec {
  NormKind kind = NormKind::none;
  float eps = 0;
  bool bias = false;
  float weight_offset = 0;
};

enum class RopeScalingKind : std::uint8_t { none, linear, dynamic, llama3, yarn, longrope };

// How a rotary embedding is stretched beyond the length it was trained on; see rope.h for the formulas.
// Fields that a kind does not use keep their defaults.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1;
  int original_positions = 0;  // the length of training
  // llama3
  double low_freq_factor = 1;
  double high_freq_factor = 4;
  // yarn
  double beta_fast = 32;
  double beta_slow = 1;
  bool truncate = true;
  // longrope: one divisor a pair of elements
  std::vector<double> short_factors = {};
  std::vector<double> long_factors = {};
  // yarn and longrope: what cos and sin are multiplied by
  double attention_factor = 1;
};

struct RopeSpec {
  int rotary_dim = 0;  // elements of a head that turn; even
  double theta = 10000;
  bool interleaved = false;
  RopeScaling scaling = {};
};

// Norm of queries and keys before the rotation.
enum class QkNorm : std::uint8_t {
  none,
  shared,     // each head on its own, one weight [head_dim] for all
  per_head,   // each head on its own, a weight a head
  whole_row,  // all heads of a token together
};

struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  bool qkv_bias = false;
  bool out_bias = false;
  QkNorm qk_norm = QkNorm::none;
  NormSpec qk_norm_spec = {};
  float scale = 1;     // of the scores
  float soft_cap = 0;  // of the scores; 0: none
  int window = 0;      // a query sees that many last tokens, itself included; 0: all
  int rope = -1;       // index into ModelSpec::ropes; -1: none

  int q_dim() const { return q_heads * head_dim; }
  int kv_dim() const { return kv_heads * head_dim; }
  int qkv_dim() const { return q_dim() + 2 * kv_dim(); }
};

struct Mlp {
  int hidden = 0;
  Activation activation = Activation::silu;
  bool gated = true;
  bool up_bias = false;  // of gate and up
  bool down_bias = false;
};

// How the two halves of a layer, F in {attention, mlp}, act on the residual x:
//   serial           x += post(F(pre(x))), first attention, then mlp
//   parallel         x += attention(pre_1(x)) + mlp(pre_2(x))
//   parallel_shared  the same, with one pre-norm for both
enum class Residual : std::uint8_t { serial, parallel, parallel_shared };

struct LayerSpec {
  Attention attention = {};
  Mlp mlp = {};
  Residual residual = Residual::serial;
  NormSpec pre_norm = {};   // kind none: no norm in this place
  NormSpec post_norm = {};  // of the halves' outputs; both places used: "sandwich"
  float residual_scale = 1;
};

// In which order the rows of a fused query/key/value matrix come.
enum class QkvOrder : std::uint8_t {
  by_kind,  // all queries, all keys, all values
  by_head,  // query, key and value of the first head, then of the second ...; kv_heads == q_heads
};

// What the checkpoint calls its tensors. Layer names are relative to layers + number + "."; names of matrices
// come without ".weight" and ".bias". A list of names stands for matrices stacked by rows, in this order.
struct Names {
  std::vector<std::string> prefixes = {"model."};  // alternatives before every name but lm_head's
  std::string lm_head = "lm_head";
  std::string embedding = "embed_tokens";
  std::string positions = {};
  std::string final_norm = "norm";
  std::string layers = "layers.";

  std::string attention_norm = "input_layernorm";
  std::string attention_post_norm = {};
  std::string mlp_norm = "post_attention_layernorm";
  std::string mlp_post_norm = {};
  std::string q_norm = "self_attn.q_norm";
  std::string k_norm = "self_attn.k_norm";
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  std::string out = "self_attn.o_proj";
  std::vector<std::string> up = {"mlp.gate_proj", "mlp.up_proj"};  // the gate first
  std::string down = "mlp.down_proj";

  QkvOrder qkv_order = QkvOrder::by_kind;
  bool transposed = false;  // the layers' matrices are stored [inputs, outputs]
  // Tensors that may be there and are not needed; '*' at one end.
  std::vector<std::string> ignorable = {"*.rotary_emb.inv_freq"};
};

struct ModelSpec {
  std::string architecture;
  int dim = 0;
  int vocab = 0;
  int max_positions = 0;  // longest sequence that the model is meant for, scaling included
  float embed_scale = 1;
  int learned_positions = 0;  // rows of a table [rows, dim] that is added to the embeddings; 0: none
  std::vector<RopeSpec> ropes;
  std::vector<LayerSpec> layers;
  NormSpec final_norm;
  bool tied = false;  // the embedding is also the output matrix
  float logits_scale = 1;
  float logits_soft_cap = 0;  // 0: none
  Names names;
};

}  // namespace octavo
