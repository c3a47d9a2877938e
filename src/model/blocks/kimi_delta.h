// Spec and tensor names of Kimi delta attention.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "model/norm_spec.h"

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// Kimi delta attention (Kimi Team, "Kimi Linear", 2025): a gated delta net with a separate decay for each row
// of a state. Decays and output gates are each computed with two matrices, with `head_dim` numbers in
// between.
struct KimiDelta {
  int heads = 0;
  int head_dim = 0;  // width of queries, keys and values
  int conv_width = 0;
  NormSpec norm = {};  // norm of each head's output, before its gate

  std::int64_t inner() const { return std::int64_t{heads} * head_dim; }

  struct Names {
    std::string prefix = "self_attn.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const KimiDelta& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
