// Configuration (spec) and tensor names of time mixing and channel mixing of RWKV-7.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/blocks/mlp.h"
#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// Time mixing of RWKV-7 (Peng et al., 2025; WkvArgs). Each of its inputs is a mixture of a token and the
// previous token. Decays, rates, gates, and the weight of the first layer's values are each computed with two
// matrices and an activation between them. See blocks/time_mix.cc.
struct TimeMix {
  int heads = 0;
  int head_dim = 0;
  int decay_rank = 0;  // The ranks are the widths between the two matrices.
  int rate_rank = 0;
  int value_rank = 0;
  int gate_rank = 0;
  bool first = false;  // this is the first layer, whose values later layers mix into their own values
  float unit_eps = 0;  // see WkvArgs::eps
  NormSpec norm = {};  // see WkvArgs::norm

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }

  struct Names {
    std::string prefix = "attn.";
    std::vector<std::string> shares = {"attn.x_r", "attn.x_w", "attn.x_k",
                                       "attn.x_v", "attn.x_a", "attn.x_g"};
    static Names of_gguf(const GgufLayers& layers);
  };
};

// Channel mixing of RWKV-7: an MLP whose input is a mixture of a token and the previous token.
struct ChannelMix {
  Mlp mlp;

  struct Names {
    std::string shares = "ffn.x_k";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
