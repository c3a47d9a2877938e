// Compressed attention.
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

// Attention over the last tokens and over compressed entries of several tokens (CompressArgs; DeepSeek-V4,
// 2026). A token has one key, which is also its value. See blocks/compressed_attention.cc.
struct CompressedAttention {
  int heads = 0;
  int head_dim = 0;
  int q_rank = 0;      // width of the queries' latent
  int out_groups = 1;  // groups of heads; each has a matrix, and the last matrix mixes their products
  int out_rank = 0;    // numbers of each of these products
  int window = 0;      // last tokens that a query sees, itself included
  NormSpec norm = {};  // norms of the latent, of each head of queries (no weight), of keys and of entries
  float scale = 1;     // factor of the scores
  int rope = -1;                        // index into ModelSpec::ropes: rotates the ends of heads
  int rate = 0;                         // tokens of an entry; without entries 0
  bool overlaps = false;                // an entry also covers the tokens of the entry before it
  std::optional<Indexer> indexer = {};  // nullopt: a query sees all entries; with `overlaps`

  int sets() const { return overlaps ? 2 : 1; }
  int index_dim() const { return indexer ? indexer->head_dim : 0; }

  // Names in the checkpoint.
  struct Names {
    std::string prefix = "attn.";
    static Names of_gguf(const GgufLayers& layers);
  };
};

std::unique_ptr<Block> make_block(const CompressedAttention& spec, const Namer& name, std::int64_t dim);

}  // namespace octavo
