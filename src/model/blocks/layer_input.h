// Inputs of layers.
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

// A vector for each token and layer, made of the token's id and of its embedding ("per-layer embeddings",
// Gemma 3n, 2025). After the halves of a layer it is multiplied by a gate of the residual, and its
// projection is added. See blocks/layer_input.cc.
struct LayerInputs {
  int size = 0;                                   // width of a layer's vector
  int vocab = 0;                                  // ids with vectors; others have the first one's
  NormSpec norm = {};                             // norm of the part made from the embedding
  Activation activation = Activation::gelu_tanh;  // activation of the gate

  // Names in the checkpoint.
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

// layer: index of the layer whose vectors it reads.
std::unique_ptr<Block> make_layer_input(const LayerInputs& spec, std::int64_t layer, const Namer& name,
                                        std::int64_t dim);

}  // namespace octavo
