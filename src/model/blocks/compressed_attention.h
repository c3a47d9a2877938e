// Configuration (spec) and tensor names of DeepSeek-V4's compressed attention.
#pragma once

#include <optional>
#include <string>

#include "model/blocks/indexer.h"
#include "model/norm_spec.h"

namespace octavo {

class GgufLayers;

// Attention over the last tokens and over compressed entries, each of which covers several tokens
// (CompressArgs; DeepSeek-V4, 2026). A token has one key, which is also its value. See
// blocks/compressed_attention.cc.
struct CompressedAttention {
  int heads = 0;
  int head_dim = 0;
  int q_rank = 0;  // width of the latent that queries are computed from
  // each group of heads has an output matrix; one more matrix combines the groups' outputs
  int out_groups = 1;
  int out_rank = 0;    // width of a group's output
  int window = 0;      // number of tokens that a query sees directly, including itself
  NormSpec norm = {};  // norm of the latent, of query heads (without weight), of keys and of entries
  float scale = 1;
  int rope = -1;          // index into ModelSpec::ropes; only the last elements of each head are rotated
  int rate = 0;           // tokens per compressed entry; 0: no entries
  bool overlaps = false;  // an entry also covers the tokens of the previous entry
  // selects entries, only with `overlaps`; nullopt: a query sees all entries
  std::optional<Indexer> indexer = {};

  int sets() const { return overlaps ? 2 : 1; }
  int index_dim() const { return indexer ? indexer->head_dim : 0; }

  struct Names {
    std::string prefix = "attn.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

}  // namespace octavo
