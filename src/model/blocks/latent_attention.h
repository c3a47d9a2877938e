// Configuration (spec) and tensor names of latent attention (MLA).
#pragma once

#include <optional>
#include <string>

#include "model/blocks/indexer.h"
#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// Multi-head latent attention; blocks/latent_attention.cc describes it.
struct LatentAttention {
  int heads = 0;
  // width of the latent that queries are computed from; 0: queries are computed from the input
  int q_rank = 0;
  int kv_rank = 0;  // width of the latent that keys and values are computed from
  int nope_dim = 0;   // elements of a query or key without RoPE, per head
  int rope_dim = 0;   // elements with RoPE; all heads share this part of the key
  int value_dim = 0;  // width of a head's values
  NormSpec norm = {};
  bool bias = false;  // the projections to the latents and the output projection have biases
  float scale = 1;
  int rope = -1;             // index into ModelSpec::ropes
  float latent_scale = 1;    // multiplies the latent of keys and values after its norm
  bool head_gate = false;    // see Attention::head_gate
  bool output_gate = false;  // see Attention::output_gate; the gates are a separate matrix
  bool sinks = false;        // see AttentionScores::sinks
  bool temperature = false;  // scores are scaled by ModelSpec::temperature
  bool causal = true;
  std::optional<Indexer> indexer = {};  // requires q_rank; nullopt: a query sees all tokens

  int q_dim() const { return nope_dim + rope_dim; }
  // Width of a cached key, without the indexer's key.
  int key_dim() const { return kv_rank + rope_dim; }

  struct Names {
    std::string q = "self_attn.q_proj";
    std::string q_down = "self_attn.q_a_proj";
    std::string q_norm = "self_attn.q_a_layernorm";
    std::string q_up = "self_attn.q_b_proj";
    std::string down = "self_attn.kv_a_proj_with_mqa";
    std::string norm = "self_attn.kv_a_layernorm";
    std::string up = "self_attn.kv_b_proj";
    // Used instead of `up`: two tensors [heads, kv_rank, nope_dim] and [heads, value_dim, kv_rank].
    std::string up_key = {};
    std::string up_value = {};
    std::string gate = "self_attn.linear_gate";  // of output_gate
    // prefix of the indexer's tensors
    std::string indexer = "self_attn.indexer.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
