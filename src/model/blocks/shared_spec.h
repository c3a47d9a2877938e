// Configuration (spec) of a transformer layer whose weights several layers share.
#pragma once

#include <cstdint>

#include "model/blocks/mlp.h"
#include "model/norm_spec.h"

namespace octavo {

// Attention and then an MLP, shared by several layers (Zamba2, 2024). The input is the concatenation of the
// residual and the token's embedding. Each use adds its own low-rank matrices to the shared matrices, and has
// its own last matrix. The output is added to the input of the layer's mixer, not to the residual. See
// blocks/shared_transformer.cc.
struct SharedTransformer {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;
  int rope = -1;  // index into ModelSpec::ropes; -1: no RoPE
  Mlp mlp;
  int mlp_rank = 0;  // rank of the matrices that are added to the MLP's first matrix
  // rank of the matrices that are added to the query, key and value matrices; 0: none
  int attention_rank = 0;
  NormSpec norm = {};  // norm of attention's input and of the MLP's input
  int owner = 0;       // index of the first layer with this block, which has the shared tensors
  int use = 0;         // index of this use among all uses

  std::int64_t rows() const { return std::int64_t{heads} * head_dim; }
};

}  // namespace octavo
