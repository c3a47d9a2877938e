// Configuration (spec) and tensor names of the gated delta net, a linear attention of Qwen3-Next.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// A gated delta net (GatedDeltaArgs) after a short convolution. A sequence has a state of fixed size and no
// KV cache.
struct DeltaNet {
  int key_heads = 0;
  int value_heads = 0;  // a multiple of key_heads
  bool tiled = false;   // see GatedDeltaArgs::tiled
  int key_dim = 0;      // width per head
  int value_dim = 0;
  int conv_width = 0;
  float beta_scale = 1;  // see GatedDeltaArgs::beta_scale
  NormSpec norm = {};    // norm of each value head's output, before the gate

  std::int64_t values() const { return std::int64_t{value_heads} * value_dim; }
  std::int64_t channels() const { return 2 * std::int64_t{key_heads} * key_dim + values(); }

  struct Names {
    // Tensors with queries, keys, values and gates. There are two tensors (queries, keys and values; gates),
    // four (one each), or one (rows ordered by key head). `ba` has two tensors, or one with rows ordered by
    // key head.
    std::vector<std::string> in = {"linear_attn.in_proj_qkv", "linear_attn.in_proj_z"};
    std::vector<std::string> ba = {"linear_attn.in_proj_b", "linear_attn.in_proj_a"};
    // One tensor, or one each for queries, keys and values.
    std::vector<std::string> conv = {"linear_attn.conv1d"};
    std::string a_log = "linear_attn.A_log";
    // true: the a_log tensor stores -exp(a_log)
    bool rates = false;
    std::string dt_bias = "linear_attn.dt_bias";
    std::string norm = "linear_attn.norm";
    std::string out = "linear_attn.out_proj";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
