// Reports which blocks slower cache tiers store and remove. The events have the same form as the events of
// the cache (kv/events.h) and use the same block keys.
//
// A tier itself uses other keys than the events, and it has more blocks than the engine remembers. So a
// stored block is reported only when a prompt with the block is stored or loaded. Blocks that an earlier
// process stored are reported when they are loaded.
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
  // `log` is null if events are disabled. `groups` is the number of cache groups. Each group has separate
  // blocks for the positions of a prompt.
  TierEvents(KvEventLog* log, int groups) : log_(log), groups_(groups) {}

  // Reports the blocks of the prompt that the tier has. For `keys`, see KvPrompt::keys.
  void report_stored(const KvConnector& tier, const PrefixHold& hold, std::span<const Hash128> keys);
  // Reports the blocks that host memory has written to the next tier, and the blocks that the tier has
  // removed.
  void report_changes(KvConnector& tier);

 private:
  bool listening();

  // Identifies a block in the events of the cache.
  struct Name {
    int group;
    Hash128 key;
  };
  struct Stored {
    KvEvent event;
    std::vector<std::int32_t> tokens;
  };
  void report(Hash128 piece, const KvEvent& event, std::span<const std::int32_t> tokens);

  KvEventLog* const log_;
  const int groups_;
  std::uint64_t clears_ = 0;  // value of KvEventLog::clears() for which reported_ is valid
  // Reported blocks, by medium and by the key of the piece in the tier.
  std::map<KvMedium, std::unordered_map<Hash128, Name, HashOfHash>> reported_{{KvMedium::host, {}},
                                                                              {KvMedium::storage, {}}};
  std::unordered_map<Hash128, Stored, HashOfHash> not_below_;  // reported blocks that only host memory has
};

}  // namespace octavo
