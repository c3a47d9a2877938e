// Dump of one endpoint's blocks and of its position in the event stream. A router that starts reads dumps
// of a peer, so that its index is not empty.
// Format, little endian, sizes in bytes: "octavo held blocks 1" and a line feed, block size (4), group (8),
// number of the next message (8), digest (8), number of blocks (8). Each block then has the engine's hash
// (8), the key (8) and the tiers (1).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/index/cache_event.h"
#include "fleet/index/prefix_keys.h"

namespace octavo::fleet {

struct HeldDump {
  struct Block {
    std::uint64_t name = 0;  // the engine's hash
    PrefixKey key = 0;
    std::uint8_t tiers = 0;  // bit 1 << Tier for each tier, at least one

    bool operator==(const Block&) const = default;
  };
  int block_size = 0;      // tokens per block
  std::int64_t group = 0;
  CachePosition position = {};
  std::vector<Block> blocks = {};  // in arbitrary order

  bool operator==(const HeldDump&) const = default;
};

std::string write_held_dump(const HeldDump& dump);
Result<HeldDump> read_held_dump(std::string_view bytes);

}  // namespace octavo::fleet
