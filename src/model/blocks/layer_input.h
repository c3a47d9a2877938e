// Configuration (spec) and tensor names of per-layer embeddings.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "kernels/kinds.h"
#include "model/norm_spec.h"

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// Per-layer embeddings (Gemma 3n, 2025). Each token has a vector for each layer, computed from the token's id
// and its embedding. After both halves of a layer, a gate is computed from the residual and multiplied by the
// vector. A projection of the product is added to the residual. See blocks/layer_input.cc.
struct LayerInputs {
  int size = 0;        // width of a vector
  // number of token ids that have vectors; larger ids use the vector of id 0; 0: vectors only depend on the
  // embedding
  int vocab = 0;
  NormSpec norm = {};  // norm of the part that is computed from the embedding
  Activation activation = Activation::gelu_tanh;

  struct Names {
    std::string table = "embed_tokens_per_layer";
    std::string projection = "per_layer_model_projection";
    std::string norm = "per_layer_projection_norm";
    std::string gate = "per_layer_input_gate";
    std::string out = "per_layer_projection";
    std::string post_norm = "post_per_layer_input_norm";
    static Names of_gguf(const GgufLayers& layers);
  };
};

// `layer` is the index of the layer whose vectors the block reads.
std::unique_ptr<Block> make_layer_input(const LayerInputs& spec, std::int64_t layer, const Namer& name,
                                        std::int64_t dim);

}  // namespace octavo
