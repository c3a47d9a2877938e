// A transformer that several layers share.
#pragma once

#include <cstdint>

#include "model/blocks/mlp.h"
#include "model/norm_spec.h"

namespace octavo {

// Attention followed by an MLP, shared by several layers (Zamba2, 2024). The input is the residual and the
// token's embedding side by side. Each use adds separate low-rank products to the shared matrices, and a
// last matrix. The output is added to the input of the layer's mixer, not to the residual. See
// blocks/shared_transformer.cc.
struct SharedTransformer {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;  // factor of the scores
  int rope = -1;    // index into ModelSpec::ropes; -1: none
  Mlp mlp;
  int mlp_rank = 0;        // rank of the products added to the MLP's first matrix
  int attention_rank = 0;  // rank of the products added to queries, keys and values, or 0
  NormSpec norm = {};      // norm of the input of attention and MLP
  int owner = 0;           // the first layer with this block; its tensors are used
  int use = 0;             // the number of this use, among those of all such blocks

  std::int64_t rows() const { return std::int64_t{heads} * head_dim; }
};

}  // namespace octavo
