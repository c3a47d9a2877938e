// Configuration (spec) and tensor names of cross attention.
#pragma once

#include <string>
#include <vector>

namespace octavo {

// Attention to an encoder's rows. Queries are computed from the layer's input, keys and values from the
// encoder's rows. Each query head has a separate KV head. See blocks/cross_attention.cc.
struct CrossAttention {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;
  bool bias = true;  // the products have biases; for keys, k_bias decides
  bool k_bias = false;

  int rows() const { return heads * head_dim; }

  struct Names {
    std::string norm = {};
    std::string post_norm = {};
    std::string q = {};
    std::vector<std::string> kv = {};
    std::string out = {};
  };
};

}  // namespace octavo
