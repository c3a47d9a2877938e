// Names and layout of a checkpoint's tensors.
#pragma once

#include <string>
#include <vector>

#include "model/blocks/kinds.h"

namespace octavo {

// Names of tensors that kinds share; of<Kind>() returns those of one kind (blocks/kinds.h). '#' in a
// layer's name is replaced by LayerSpec::part. Layer names are relative to layers + number + "."; names of
// matrices come without ".weight" and ".bias". A list of names means matrices stacked by rows, in this
// order.
struct Names {
  std::vector<std::string> prefixes = {"model."};  // alternatives before every name but lm_head's
  std::string lm_head = "lm_head";                 // without a prefix before it
  std::string logits_bias = {};                    // a whole name; empty: lm_head + ".bias"
  std::string embedding = "embed_tokens";
  std::string positions = {};
  std::string token_types = {};
  std::string embedding_norm = {};
  std::string final_norm = "norm";
  std::string layers = "layers.";
  std::string only_layer = {};  // of networks of one layer: in place of layers + number + "."

  std::string attention_norm = "input_layernorm";  // empty if the mixers have no norm
  std::string attention_post_norm = {};
  std::string mlp_norm = "post_attention_layernorm";
  std::string mlp_post_norm = {};
  std::string q_norm =
      "self_attn.q_norm";  // for each head: '{}' is its number; without it, they are one tensor
  std::string k_norm = "self_attn.k_norm";
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  std::string out = "self_attn.o_proj";
  std::string head_gate = "self_attn.g_proj";
  std::vector<std::string> up = {"mlp.gate_proj", "mlp.up_proj"};  // the gate first
  std::string down = "mlp.down_proj";
  std::vector<std::string> slopes = {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"};  // of xielu
  std::string sinks = "self_attn.sinks";
  std::string distance_bias = {};  // a whole name
  std::string layer_scale = "layer_scalar";

  bool gguf = false;  // names after a prefix for several tensors are as in GGUF files

  std::string token_norm = {};  // this and the next two names are those of HiddenInput
  std::string hidden_norm = {};
  std::string joint = {};

  std::string patches = {};  // patch embedding of image encoders
  std::string class_token = {};
  // Whole names of two vectors: an encoder's output minus standard_bias is multiplied by standard_scale.
  std::string standard_scale = {};
  std::string standard_bias = {};
  std::string newline = {};                    // row of ImageInput::tiled; the name has no prefix
  std::string separator = {};                  // row of ImageInput::whole_last, likewise
  std::vector<std::string> convolutions = {};  // convolutions of sound encoders
  bool stacked_tables =
      false;  // class token and positions are stored [1, rows, dim], under their names alone
  std::vector<std::string> projector =
      {};  // its matrices in their order; these five without a prefix before them
  std::string projector_norm = {};
  std::string projector_merger = {};              // of Projector::merged
  std::vector<std::string> deep_projectors = {};  // likewise of each of ImageInput::deep_layers: '{}' is its
  std::string deep_projector_norms = {};          // number among them
  // Vectors, if any, that scale the rows of `out` and `down`, with their biases. LayerScale: Touvron et al.,
  // "Going deeper with Image Transformers", 2021.
  std::string out_scale = {};
  std::string down_scale = {};

  // Matrices called x.linear have bounds of their inputs and outputs: x.input_min and so on.
  bool bounded = false;

  QkvOrder qkv_order = QkvOrder::by_kind;
  bool up_first = false;    // a fused matrix of gate and up has the rows of up first
  bool transposed = false;  // the layers' matrices are stored [inputs, outputs]
  // Tensors that a checkpoint may have and the model does not read; '*' at one end.
  std::vector<std::string> ignorable = {"*.rotary_emb.inv_freq"};

  KindNames kinds = {};
  template <class Kind>
  auto& of() {
    return kinds.of<Kind>();
  }
  template <class Kind>
  const auto& of() const {
    return kinds.of<Kind>();
  }

  // A tensor with `prefix`, by its usual name and by its name in GGUF files.
  std::string behind(const std::string& prefix, const char* usual, const char* in_gguf) const {
    return prefix + (gguf ? in_gguf : usual);
  }
};

}  // namespace octavo
