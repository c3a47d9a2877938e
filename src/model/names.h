// Names and layout of a checkpoint's tensors.
#pragma once

#include <string>
#include <vector>

#include "model/blocks/kinds.h"
#include "model/inputs/specs.h"

namespace octavo {

struct EmbeddingNames {
  std::string tokens = "embed_tokens";
  std::string positions = {};
  std::string token_types = {};
  std::string norm = {};
};

// The mixers of a layer, whatever their kind, and their projections.
struct AttentionNames {
  std::string norm = "input_layernorm";  // empty if the mixers have no norm
  std::string post_norm = {};
  std::string q_norm =
      "self_attn.q_norm";  // for each head: '{}' is its number; without it, they are one tensor
  std::string k_norm = "self_attn.k_norm";
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  QkvOrder qkv_order = QkvOrder::by_kind;
  std::string out = "self_attn.o_proj";
  // A vector, if any, that scales the rows of `out`, and its bias. LayerScale: Touvron et al., "Going deeper
  // with Image Transformers", 2021.
  std::string out_scale = {};
  std::string head_gate = "self_attn.g_proj";
  std::string sinks = "self_attn.sinks";
  std::string distance_bias = {};  // a whole name
};

struct MlpNames {
  std::string norm = "post_attention_layernorm";
  std::string post_norm = {};
  std::vector<std::string> up = {"mlp.gate_proj", "mlp.up_proj"};  // the gate first
  bool up_first = false;  // a fused matrix of gate and up has the rows of up first
  std::string down = "mlp.down_proj";
  std::string down_scale = {};                                                     // as out_scale
  std::vector<std::string> slopes = {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"};  // of xielu
};

// Encoders of images and sound.
struct EncoderNames {
  std::string patches = {};
  std::string class_token = {};
  std::string newline = {};                    // row of ImageInput::tiled; the name has no prefix
  std::string separator = {};                  // row of ImageInput::whole_last, likewise
  std::vector<std::string> convolutions = {};  // of sound encoders
  // Whole names of two vectors: an encoder's output minus standard_bias is multiplied by standard_scale.
  std::string standard_scale = {};
  std::string standard_bias = {};
  bool stacked_tables =
      false;  // class token and positions are stored [1, rows, dim], under their names alone
};

// An encoder's projector; these names have no prefix.
struct ProjectorNames {
  std::vector<std::string> matrices = {};  // in their order
  std::string norm = {};
  std::string merger = {};  // of Projector::merged
  std::vector<std::string> deep =
      {};                       // likewise of each of ImageInput::deep_layers: '{}' is its number among
  std::string deep_norms = {};  // them
};

// Names of tensors that kinds share; of<Kind>() returns those of one kind (blocks/kinds.h). '#' in a
// layer's name is replaced by LayerSpec::part. Layer names are relative to layers + number + "."; names of
// matrices come without ".weight" and ".bias". A list of names means matrices stacked by rows, in this
// order.
struct Names {
  std::vector<std::string> prefixes = {"model."};  // alternatives before every name but lm_head's
  std::string lm_head = "lm_head";                 // without a prefix before it
  std::string logits_bias = {};                    // a whole name; empty: lm_head + ".bias"
  EmbeddingNames embedding = {};
  std::string final_norm = "norm";
  std::string layers = "layers.";
  std::string only_layer = {};  // of networks of one layer: in place of layers + number + "."

  AttentionNames attention = {};
  MlpNames mlp = {};
  std::string layer_scale = "layer_scalar";
  HiddenNames hidden = {};
  EncoderNames encoder = {};
  ProjectorNames projector = {};

  bool gguf = false;     // names after a prefix for several tensors are as in GGUF files
  bool bounded = false;  // matrices called x.linear have bounds of their inputs and outputs: x.input_min ..
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
