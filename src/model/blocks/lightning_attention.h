// Configuration (spec) and tensor names of lightning attention.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model/blocks/attention.h"

namespace octavo {

class GgufLayers;

// Lightning attention (Qin et al., "Lightning Attention-2", 2024): attention without softmax. The state of a
// head decays by a fixed factor with every token. A sequence has a state and no KV cache.
struct LightningAttention {
  int heads = 0;
  int head_dim = 0;
  std::vector<float> rates;  // decay rate of each head
  NormSpec norm = {};        // norm of the output before the gate, over all heads or over each group
  int norm_groups = 1;
  bool silu = true;       // silu is applied to queries, keys and values
  NormSpec qk_norm = {};  // norm of each head's queries and keys
  float scale = 1;        // multiplies queries; only with qk_norm
  int rope = -1;          // index into ModelSpec::ropes; -1: no RoPE

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }

  struct Names {
    std::string in = "self_attn.qkv_proj";
    QkvOrder order = QkvOrder::by_head;
    std::string gate = "self_attn.output_gate";
    std::string norm = "self_attn.norm";
    std::string out = "self_attn.out_proj";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
