// Spec and tensor names of compressed attention.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "model/blocks/indexer.h"
#include "model/norm_spec.h"

namespace octavo {

class Block;
class GgufLayers;
class Namer;

// Attention over the last tokens and over compressed entries, each of which covers several tokens
// (CompressArgs; DeepSeek-V4, 2026). A token has one key, which is also its value. See
// blocks/compressed_attention.cc.
struct CompressedAttention {
  int heads = 0;
  int head_dim = 0;
  int q_rank = 0;      // width of the latent from which queries are computed
  int out_groups = 1;  // number of groups of heads; each group has an output matrix, and a further matrix
                       // combines the outputs of the groups
  int out_rank = 0;    // width of the output of each group
  int window = 0;      // number of last tokens that a query sees, including itself
  NormSpec norm = {};  // norms of the latent, of each query head (without weight), of keys and of entries
  float scale = 1;     // scale of the scores
  int rope = -1;       // index into ModelSpec::ropes; the last elements of each head are
                       // rotated
  int rate = 0;        // number of tokens in an entry; 0: no entries
  bool overlaps = false;                // whether an entry also covers the tokens of the previous entry
  std::optional<Indexer> indexer = {};  // indexer that selects entries, only with `overlaps`; nullopt: a
                                        // query sees all entries

  int sets() const { return overlaps ? 2 : 1; }
  int index_dim() const { return indexer ? indexer->head_dim : 0; }

  struct Names {
    std::string prefix = "attn.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const CompressedAttention& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
