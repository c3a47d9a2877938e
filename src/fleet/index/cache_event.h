// Events of an engine's prefix cache: stored and removed blocks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/index/overlap.h"

namespace octavo::fleet {

struct CacheEvent {
  enum class Kind : std::uint8_t {
    stored,   // consecutive blocks were stored
    removed,  // blocks were removed from one tier
    cleared,  // the engine has dropped all blocks
    lost,     // the connection is new, or events are missing, so the engine's blocks are unknown
  };
  Kind kind = Kind::cleared;
  Tier tier = Tier::device;
  std::int64_t group = 0;  // index of the group of layers with common block tables
  bool window = false;     // stored: the group's layers use a sliding window
  std::vector<std::uint64_t> blocks = {};
  std::optional<std::uint64_t> parent = {};  // stored: hash of the block before the first block
  // stored: [blocks, block_size]; empty: known blocks were stored in another tier
  std::vector<std::uint32_t> tokens = {};
  std::int64_t block_size = 0;  // stored: tokens per block
  std::string adapter = {};     // stored: name of the LoRA adapter; "": base model
  std::string salt = {};        // stored: further data in the hash of the first block
};

// Position in an endpoint's numbered messages: all events before it were applied.
struct CachePosition {
  std::uint64_t next = 0;    // number of the next message; 0: no message yet
  std::uint64_t digest = 0;  // XXH64 of the previous message, to detect a restart of the engine

  bool operator==(const CachePosition&) const = default;
};

}  // namespace octavo::fleet
