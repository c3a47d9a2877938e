// The matrices at both ends of a network, which networks that propose for it use as well.
#pragma once

#include "model/parameters.h"

namespace octavo {

struct Ends {
  MatrixParameter embedding;
  MatrixParameter lm_head;  // absent if tied, and in models that do not generate
  NormParameter final_norm;
  float embed_scale = 1;
  const Ends* other = nullptr;  // its matrices replace missing ones; outlives this

  const Weight& table() const { return embedding.weight ? *embedding.weight : other->table(); }
  const Weight& output() const {
    if (lm_head.weight) return *lm_head.weight;
    return other != nullptr ? other->output() : *embedding.weight;
  }
};

}  // namespace octavo
