// The first and last matrices of a network, which its drafters use, too.
#pragma once

#include "model/parameters.h"

namespace octavo {

struct Ends {
  MatrixParameter embedding;
  MatrixParameter lm_head;  // missing if tied to the embedding, or if the model does not generate text
  NormParameter final_norm;
  float embed_scale = 1;
  const Ends* other = nullptr;  // matrices of the target, used where this network has none; must outlive this
                                // object

  const Weight& table() const { return embedding.weight ? *embedding.weight : other->table(); }
  const Weight& output() const {
    if (lm_head.weight) return *lm_head.weight;
    return other != nullptr ? other->output() : *embedding.weight;
  }
};

}  // namespace octavo
