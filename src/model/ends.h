// Embedding, output matrix and final norm of a network. A drafter may use the matrices of its target.
#pragma once

#include "model/parameters.h"

namespace octavo {

struct Ends {
  MatrixParameter embedding;
  MatrixParameter lm_head;  // missing if tied to the embedding, or if the model does not generate text
  NormParameter final_norm;
  float embed_scale = 1;
  // ends of the target model, for the matrices that a drafter lacks; null: no target; must outlive this
  // object
  const Ends* other = nullptr;

  const Weight& table() const { return embedding.weight ? *embedding.weight : other->table(); }
  const Weight& output() const {
    if (lm_head.weight) return *lm_head.weight;
    return other != nullptr ? other->output() : *embedding.weight;
  }
};

}  // namespace octavo
