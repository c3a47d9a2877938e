// Configuration (spec) and tensor names of attention in a repeated layer.
#pragma once

#include <string>

#include "model/blocks/attention.h"

namespace octavo {

// Attention of a layer whose matrices an earlier layer also uses (LoopCoder: IQuest, 2026). A query sees the
// last tokens of this layer, and all tokens of the earlier layer. A gate for each head, which is computed
// from the query, mixes the two outputs (MixHeadsArgs).
struct LoopAttention {
  Attention attention;  // this layer's attention, with its window
  int source = 0;       // index of the earlier layer, whose keys and values have the same size

  struct Names {
    std::string gate = "model.gate_projections.#";  // full name
  };
};

}  // namespace octavo
