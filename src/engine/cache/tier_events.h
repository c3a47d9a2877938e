// What tiers below the cache gain and lose, told as the cache's own gains and losses are (kv/events.h),
// under the names that the cache has for its blocks.
//
// A tier knows blocks by other names, and holds more of them than the engine remembers: a block is told of
// when a prompt that has it passes by, written or loaded. What an earlier process has left there is told of
// when it is loaded.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "kv/events.h"
#include "schedule/prefix_hold.h"
#include "transfer/kv_connector.h"

namespace octavo {

class TierEvents {
 public:
  // log: null: nobody wants to know. groups: of the cache, each of which has a block of its own at a place in
  // a prompt.
  TierEvents(KvEventLog* log, int groups) : log_(log), groups_(groups) {}

  // Tells of those of the prompt's blocks that the tier has. keys: of the prompt's blocks there
  // (KvPrompt::keys).
  void tell_stored(const KvConnector& tier, const PrefixHold& hold, std::span<const Hash128> keys);
  // Tells of those that it has written from host memory to the tier below, and of those that it has lost.
  void tell_changes(KvConnector& tier);

 private:
  bool listening();

  // As the cache knows a block.
  struct Name {
    int group;
    Hash128 key;
  };
  struct Stored {
    KvEvent event;
    std::vector<std::int32_t> tokens;
  };
  void tell(Hash128 piece, const KvEvent& event, std::span<const std::int32_t> tokens);

  KvEventLog* const log_;
  const int groups_;
  std::uint64_t clears_ = 0;  // of the log, when told_ was true
  // By the piece's key in the tier, for each medium below the cache.
  std::map<KvMedium, std::unordered_map<Hash128, Name, HashOfHash>> told_{{KvMedium::host, {}},
                                                                          {KvMedium::storage, {}}};
  std::unordered_map<Hash128, Stored, HashOfHash>
      not_below_;  // what was told of those that host memory alone has
};

}  // namespace octavo
