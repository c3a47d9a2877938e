// Names of the tensors in a checkpoint. A family sets the names that differ from Llama's, which are the
// defaults.
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

// Names for a layer's mixer of any type, and for its projections.
struct AttentionNames {
  std::string norm = "input_layernorm";  // "": there is no norm before mixers
  std::string post_norm = {};
  // one tensor for all heads or, if the name contains '{}', one per head; '{}' is the head's index
  std::string q_norm = "self_attn.q_norm";
  std::string k_norm = "self_attn.k_norm";
  std::vector<std::string> qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"};
  QkvOrder qkv_order = QkvOrder::by_kind;
  int qkv_chunks = 1;  // with QkvOrder::by_chunk: number of groups of KV heads
  std::string out = "self_attn.o_proj";
  // Vector that scales the rows of `out` and its bias (LayerScale: Touvron et al., "Going deeper with Image
  // Transformers", 2021). Empty if there is no such vector.
  std::string out_scale = {};
  std::string head_gate = "self_attn.g_proj";
  std::string gate_bias = {};  // full name; one number per head, with AttentionBiases::gate
  std::string gate_scale = {};  // full name; vector that scales the rows of the gates
  std::string sinks = "self_attn.sinks";
  std::string fixed_keys = "self_attn.param_sink_key";
  std::string fixed_values = "self_attn.param_sink_value";
  std::string distance_bias = {};  // full name
};

struct MlpNames {
  std::string norm = "post_attention_layernorm";
  std::string post_norm = {};
  std::vector<std::string> up = {"mlp.gate_proj", "mlp.up_proj"};  // gate, then up
  bool up_first = false;  // in a fused matrix, the rows of up precede the rows of gate
  std::string down = "mlp.down_proj";
  std::string down_scale = {};  // vector that scales the rows of `down`
  std::vector<std::string> up_scales = {};  // for each matrix of `up`, with Mlp::row_scale
  std::vector<std::string> slopes = {"mlp.act_fn.alpha_p", "mlp.act_fn.alpha_n"};  // parameters of xielu
};

struct EncoderNames {
  std::string patches = {};
  std::string patch_norm = {};
  std::string class_token = {};
  std::string newline = {};                    // row of ImageInput::tiled; full name
  std::string separator = {};                  // row of ImageInput::whole_last; full name
  std::vector<std::string> convolutions = {};  // only for audio encoders
  // Full names of two vectors. An encoder's output x becomes (x - standard_bias) * standard_scale.
  std::string standard_scale = {};
  std::string standard_bias = {};
  // true: class token and positions are stored as [1, rows, dim], and their names have no ".weight"
  bool stacked_tables = false;
};

// Names for an encoder's projector. They have no prefix.
struct ProjectorNames {
  std::vector<std::string> matrices = {};  // in the order of use
  std::string norm = {};
  std::string patch_norm = {};
  std::string hidden_norm = {};
  std::vector<std::string> patch_matrices = {};  // of Projector::patch_hidden
  std::string merger = {};  // matrix of Projector::merged
  // names for each of ImageInput::deep_layers; '{}' is the index in this list or, in GGUF files, the layer
  std::vector<std::string> deep = {};
  std::string deep_norms = {};  // names of the norms of ImageInput::deep_layers
};

// All names of a network. of<Kind>() returns the names that only one type of block has (blocks/kinds.h). The
// full name of a tensor in a layer is prefix + layers + number + "." + name; '#' in the name is replaced by
// LayerSpec::part. Names of matrices lack ".weight" and ".bias". A list of several names means that these
// matrices are stacked by rows, in this order.
struct Names {
  // prefixes that the checkpoint may use for all names except lm_head
  std::vector<std::string> prefixes = {"model."};
  std::string lm_head = "lm_head";  // without a prefix
  std::string logits_bias = {};     // full name; "": lm_head + ".bias"
  std::string logits_scale = {};    // full name; vector that scales the rows of lm_head
  EmbeddingNames embedding = {};
  std::string final_norm = "norm";
  std::string layers = "layers.";
  std::string only_layer = {};  // in networks with one layer, replaces layers + number + "."

  AttentionNames attention = {};
  MlpNames mlp = {};
  std::string layer_scale = "layer_scalar";
  HiddenNames hidden = {};
  GramInput::Names grams = {};
  EncoderNames encoder = {};
  ProjectorNames projector = {};

  bool gguf = false;        // names that are formed from a prefix have the forms of GGUF files
  bool bounded = false;     // matrices called x.linear have limits of inputs and outputs: x.input_min ..
  bool transposed = false;  // matrices of layers are stored as [inputs, outputs]
  // Tensors that a checkpoint may have but the model does not read. A name may begin or end with '*'.
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

  // Returns `prefix` + `usual`, or `prefix` + `in_gguf` for GGUF files.
  std::string behind(const std::string& prefix, const char* usual, const char* in_gguf) const {
    return prefix + (gguf ? in_gguf : usual);
  }
};

}  // namespace octavo
