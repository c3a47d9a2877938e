// Events of an engine's prefix cache: blocks of tokens stored and removed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fleet/index/overlap.h"

namespace octavo::fleet {

struct CacheEvent {
  enum class Kind : std::uint8_t {
    stored,   // blocks were stored, each after the previous one
    removed,  // blocks were removed from one tier
    cleared,  // the engine has dropped all blocks
    lost,     // the connection is new, or events are missing: the engine's blocks are unknown
  };
  Kind kind = Kind::cleared;
  Tier tier = Tier::device;
  std::int64_t group = 0;                    // index of the group of layers that share block tables
  bool window = false;                       // stored: the layers of the group use only the last tokens
  std::vector<std::uint64_t> blocks = {};    // the engine's hashes of the blocks
  std::optional<std::uint64_t> parent = {};  // stored: hash of the block before the first one
  std::vector<std::uint32_t> tokens = {};    // stored: [blocks, block_size]; empty: known blocks in another
                                             // tier
  std::int64_t block_size = 0;               // stored: tokens in a block
  std::string adapter = {};                  // stored: name of the LoRA adapter; "": none
  std::string salt = {};                     // stored: other data on which the first block depends
};

// Position in the numbered messages of an endpoint: the events up to there were applied.
struct CachePosition {
  std::uint64_t next = 0;    // number of the next message; 0: no message yet
  std::uint64_t digest = 0;  // XXH64 of the previous message; distinguishes different runs of the engine

  bool operator==(const CachePosition&) const = default;
};

}  // namespace octavo::fleet
