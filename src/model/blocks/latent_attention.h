// Latent attention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/blocks/indexer.h"
#include "model/norm_spec.h"

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// Multi-head latent attention: see blocks/latent_attention.cc.
struct LatentAttention {
  int heads = 0;
  int q_rank = 0;            // width of the queries' latent; 0: queries come from the input
  int kv_rank = 0;           // width of the latent of keys and values
  int nope_dim = 0;          // unrotated part of a head's query and key
  int rope_dim = 0;          // rotated part; all heads share one such key
  int value_dim = 0;         // per head
  NormSpec norm = {};        // norm of the latents
  bool bias = false;         // biases of the projections to the latents, and of the last
  float scale = 1;           // factor of the scores
  int rope = -1;             // index into ModelSpec::ropes
  float latent_scale = 1;    // factor of the latent of keys and values, after its norm
  bool head_gate = false;    // as Attention's
  bool temperature = false;  // ModelSpec::temperature applies
  std::optional<Indexer> indexer = {};  // nullopt: a query sees all tokens; with q_rank

  int q_dim() const { return nope_dim + rope_dim; }
  int key_dim() const { return kv_rank + rope_dim; }  // cached width, without an indexer's

  // Names in the checkpoint.
  struct Names {
    std::string q = "self_attn.q_proj";
    std::string q_down = "self_attn.q_a_proj";
    std::string q_norm = "self_attn.q_a_layernorm";
    std::string q_up = "self_attn.q_b_proj";
    std::string down = "self_attn.kv_a_proj_with_mqa";
    std::string norm = "self_attn.kv_a_layernorm";
    std::string up = "self_attn.kv_b_proj";
    // The halves of `up`, in place of it: stacks [heads, kv_rank, nope_dim] and [heads, value_dim, kv_rank].
    std::string up_key = {};
    std::string up_value = {};
    // Prefix of the names of an indexer's tensors.
    std::string indexer = "self_attn.indexer.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const LatentAttention& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
