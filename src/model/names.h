// Names and layout of the tensors in a checkpoint.
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

// Names of a layer's mixer of any type, and of its projections.
struct AttentionNames {
  std::string norm = "input_layernorm";  // "": the mixers have no norm
  std::string post_norm = {};
  std::string q_norm = "self_attn.q_norm";  // one tensor for all heads or, if the name contains '{}', one
                                            // tensor per head, with the head's index
  std::string k_norm = "self_attn.k_norm";
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  QkvOrder qkv_order = QkvOrder::by_kind;
  std::string out = "self_attn.o_proj";
  // Vector that scales the rows of `out` and its bias (LayerScale: Touvron et al., "Going deeper with Image
  // Transformers", 2021); "": no such vector.
  std::string out_scale = {};
  std::string head_gate = "self_attn.g_proj";
  std::string sinks = "self_attn.sinks";
  std::string distance_bias = {};  // full name
};

struct MlpNames {
  std::string norm = "post_attention_layernorm";
  std::string post_norm = {};
  std::vector<std::string> up = {"mlp.gate_proj", "mlp.up_proj"};  // names of gate and up, in this order
  bool up_first = false;  // whether the rows of up precede those of gate in a fused matrix
  std::string down = "mlp.down_proj";
  std::string down_scale = {};  // same as out_scale, for `down`
  std::vector<std::string> slopes = {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"};  // parameters of xielu
};

struct EncoderNames {
  std::string patches = {};
  std::string class_token = {};
  std::string newline = {};                    // row of ImageInput::tiled; a full name
  std::string separator = {};                  // row of ImageInput::whole_last; a full name
  std::vector<std::string> convolutions = {};  // for sound encoders
  // Full names of two vectors: standard_bias is subtracted from an encoder's output; then the output is
  // multiplied by standard_scale.
  std::string standard_scale = {};
  std::string standard_bias = {};
  bool stacked_tables =
      false;  // whether class token and positions are stored as [1, rows, dim], under names without ".weight"
};

// Names of an encoder's projector, without a prefix.
struct ProjectorNames {
  std::vector<std::string> matrices = {};  // in the order of use
  std::string norm = {};
  std::string merger = {};             // matrix of Projector::merged
  std::vector<std::string> deep = {};  // names for each of ImageInput::deep_layers; '{}' is the index in this
                                       // list
  std::string deep_norms = {};         // norms of the same layers
};

// Names of tensors that block types share; of<Kind>() returns those of one type (blocks/kinds.h). '#' in a
// layer's name is replaced by LayerSpec::part. Names in a layer follow layers + number + "."; names of
// matrices lack ".weight" and ".bias". Several names in a list mean matrices that are stacked by rows, in
// this order.
struct Names {
  std::vector<std::string> prefixes = {"model."};  // possible prefixes of every name except lm_head
  std::string lm_head = "lm_head";                 // name without a prefix
  std::string logits_bias = {};                    // full name; "": lm_head + ".bias"
  EmbeddingNames embedding = {};
  std::string final_norm = "norm";
  std::string layers = "layers.";
  std::string only_layer = {};  // for networks with one layer: replaces layers + number + "."

  AttentionNames attention = {};
  MlpNames mlp = {};
  std::string layer_scale = "layer_scalar";
  HiddenNames hidden = {};
  EncoderNames encoder = {};
  ProjectorNames projector = {};

  bool gguf = false;     // whether names that are formed from a prefix have the forms of GGUF files
  bool bounded = false;  // whether matrices called x.linear have limits of inputs and outputs: x.input_min ..
  bool transposed = false;  // whether the layers' matrices are stored as [inputs, outputs]
  // Tensors that a checkpoint may have but the model does not read; a name may begin or end with '*'.
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

  // Returns the name of a tensor after `prefix`: its usual name, or its name in GGUF files.
  std::string behind(const std::string& prefix, const char* usual, const char* in_gguf) const {
    return prefix + (gguf ? in_gguf : usual);
  }
};

}  // namespace octavo
