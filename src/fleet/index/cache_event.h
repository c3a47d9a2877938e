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
    stored,   // blocks, each after the one before it
    removed,  // from one tier
    cleared,  // the engine has dropped all blocks
    lost,     // the connection is new, or events are missing: what the engine holds is not known
  };
  Kind kind = Kind::cleared;
  Tier tier = Tier::device;
  std::int64_t group = 0;                    // of layers that share block tables
  bool window = false;                       // stored: the group's layers see the last tokens only
  std::vector<std::uint64_t> blocks = {};    // the engine's names for them
  std::optional<std::uint64_t> parent = {};  // stored: the name of the block before the first
  std::vector<std::uint32_t> tokens = {};  // stored: [blocks, block_size]; empty: known blocks, another tier
  std::int64_t block_size = 0;             // stored: tokens
  std::string adapter = {};                // stored: LoRA; "": the model alone
  std::string salt = {};                   // stored: what else the first block depends on
};

// How far the messages of an endpoint, which bring events and are numbered, have been followed.
struct CachePosition {
  std::uint64_t next = 0;    // number of the next message; 0 before the first
  std::uint64_t digest = 0;  // XXH64 of the message before it: distinguishes runs of the engine

  bool operator==(const CachePosition&) const = default;
};

}  // namespace octavo::fleet
