// Spec and tensor names of the gated delta net.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/norm_spec.h"

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// A gated delta net (GatedDeltaArgs) after a short convolution. A sequence has a state of fixed size and no
// KV cache.
struct DeltaNet {
  int key_heads = 0;
  int value_heads = 0;  // number of value heads; a multiple of key_heads
  bool tiled = false;   // see GatedDeltaArgs::tiled
  int key_dim = 0;      // width per head
  int value_dim = 0;
  int conv_width = 0;
  float beta_scale = 1;  // see GatedDeltaArgs::beta_scale
  NormSpec norm = {};    // norm of each value head's output, before its gate

  std::int64_t values() const { return std::int64_t{value_heads} * value_dim; }
  // Returns the number of channels of the convolution: queries, keys and values.
  std::int64_t channels() const { return 2 * std::int64_t{key_heads} * key_dim + values(); }

  struct Names {
    // Names of the tensors with queries, keys, values and gates, in this order: two tensors (queries, keys
    // and values; gates), four tensors (one each), or one tensor (rows in order of key heads). `ba` has the
    // same forms.
    std::vector<std::string> in = {"linear_attn.in_proj_qkv", "linear_attn.in_proj_z"};
    std::vector<std::string> ba = {"linear_attn.in_proj_b", "linear_attn.in_proj_a"};
    // One tensor, or three: for queries, keys and values.
    std::vector<std::string> conv = {"linear_attn.conv1d"};
    std::string a_log = "linear_attn.A_log";
    // Whether the a_log tensor stores -exp(a_log).
    bool rates = false;
    std::string dt_bias = "linear_attn.dt_bias";
    std::string norm = "linear_attn.norm";
    std::string out = "linear_attn.out_proj";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const DeltaNet& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
