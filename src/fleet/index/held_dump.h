// Dump of one endpoint's blocks and its position in the events, for transfer to another router.
// Format, little endian, sizes in bytes: "octavo held blocks 1
// ", block size (4), group (8), next message (8), digest (8), number of blocks (8), then for each block: hash
// of the engine (8), key (8), tiers (1).
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
    std::uint8_t tiers = 0;  // bits 1 << Tier, at least one

    bool operator==(const Block&) const = default;
  };
  int block_size = 0;      // tokens per block
  std::int64_t group = 0;  // index of the layer group
  CachePosition position = {};
  std::vector<Block> blocks = {};  // in arbitrary order

  bool operator==(const HeldDump&) const = default;
};

std::string write_held_dump(const HeldDump& dump);
// Errors: corrupt data.
Result<HeldDump> read_held_dump(std::string_view bytes);

}  // namespace octavo::fleet
