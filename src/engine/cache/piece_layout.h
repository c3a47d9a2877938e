// Divides the cache of a model into pieces, the units that connectors transfer (transfer/kv_pieces.h).
#pragma once

#include <cstdint>
#include <vector>

#include "model/cache_layout.h"
#include "transfer/block_format.h"

namespace octavo {

struct PieceLayout {
  struct Group {
    int window = 0;
    KvSpec kv;
    std::vector<std::size_t> layers{};  // layers whose blocks the piece contains; layers with the same plane
                                        // are listed once
  };

  std::vector<Group> groups{};
  std::int64_t piece_bytes = 0;
  std::int64_t state_bytes = 0;

  static PieceLayout of(const CacheLayout& layout);
  bool is_state(int part) const { return part >= static_cast<int>(groups.size()); }
  // Writes the number and the sizes of the pieces to `format`.
  void describe(BlockFormat& format) const;
};

}  // namespace octavo
