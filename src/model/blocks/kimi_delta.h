// Configuration (spec) and tensor names of Kimi delta attention.
#pragma once

#include <cstdint>
#include <string>

#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// Kimi delta attention (Kimi Team, "Kimi Linear", 2025): a gated delta net whose state has a separate decay
// for each row. Decays and output gates are each computed with two matrices of rank head_dim, or with one
// matrix.
struct KimiDelta {
  int heads = 0;
  int head_dim = 0;  // width of queries, keys and values
  int conv_width = 0;
  NormSpec norm = {};  // norm of each head's output, before the gate
  bool one_matrix = false;  // decays and gates are computed with one matrix each (Ling 3, 2026)
  float least_log = 0;      // see GatedDeltaArgs::least_log

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }

  struct Names {
    std::string prefix = "self_attn.";
    std::string log = "A_log";
    bool log_row = false;  // the logarithms are stored as [heads], not as [1, 1, heads, 1]
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
