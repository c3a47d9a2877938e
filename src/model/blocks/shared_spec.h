// Spec of a transformer layer that several layers share.
#pragma once

#include <cstdint>

#include "model/blocks/mlp.h"
#include "model/norm_spec.h"

namespace octavo {

// Attention and then an MLP, shared by several layers (Zamba2, 2024). The input is the concatenation of the
// residual and the token's embedding. Each use has separate low-rank matrices, which are added to the shared
// matrices, and a separate last matrix. The output is added to the input of the layer's mixer, not to the
// residual. See blocks/shared_transformer.cc.
struct SharedTransformer {
  int heads = 0;
  int head_dim = 0;
  float scale = 1;  // scale of the scores
  int rope = -1;    // index into ModelSpec::ropes; -1: no rotation
  Mlp mlp;
  int mlp_rank = 0;        // rank of the matrices that are added to the first matrix of the MLP
  int attention_rank = 0;  // rank of the matrices that are added to those of queries, keys and values; 0: no
                           // such matrices
  NormSpec norm = {};      // norm of the input of attention and MLP
  int owner = 0;           // index of the first layer with this block, which has the shared tensors
  int use = 0;             // index of this use among all uses of such blocks

  std::int64_t rows() const { return std::int64_t{heads} * head_dim; }
};

}  // namespace octavo
