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
    stored,
    removed,
    cleared,  // the engine has dropped all its blocks
    lost,     // the subscriber has reconnected or missed events, so the engine's blocks are unknown
  };
  Kind kind = Kind::cleared;
  Tier tier = Tier::device;
  std::int64_t group = 0;  // index of the engine's KV cache group: layers that share block tables
  bool window = false;     // used by `stored`: the group's layers have a sliding window
  std::vector<std::uint64_t> blocks = {};
  // used by `stored`: hash of the block before blocks[0]; nullopt: blocks[0] starts a prompt
  std::optional<std::uint64_t> parent = {};
  // used by `stored`: token ids, [blocks, block_size]; empty: the blocks are known and were copied to another
  // tier
  std::vector<std::uint32_t> tokens = {};
  std::int64_t block_size = 0;  // used by `stored`: tokens per block
  std::string adapter = {};     // used by `stored`: name of the LoRA adapter; "": base model
  // used by `stored`: extra data that the engine hashed into the first block, such as cache_salt
  std::string salt = {};
};

// Position in an endpoint's stream of numbered messages. All earlier messages were applied.
struct CachePosition {
  std::uint64_t next = 0;    // number of the next message; 0: no message was received
  std::uint64_t digest = 0;  // XXH64 of the last applied message, to detect a restart of the engine

  bool operator==(const CachePosition&) const = default;
};

}  // namespace octavo::fleet
