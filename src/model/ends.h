// The matrices at both ends of a network. Drafters of the network use them as well.
#pragma once

#include "model/parameters.h"

namespace octavo {

struct Ends {
  MatrixParameter embedding;
  MatrixParameter lm_head;  // absent if tied to the embedding, or if the model does not generate text
  NormParameter final_norm;
  float embed_scale = 1;
  const Ends* other = nullptr;  // the target's matrices, used where this network has none; must outlive it

  const Weight& table() const { return embedding.weight ? *embedding.weight : other->table(); }
  const Weight& output() const {
    if (lm_head.weight) return *lm_head.weight;
    return other != nullptr ? other->output() : *embedding.weight;
  }
};

}  // namespace octavo
