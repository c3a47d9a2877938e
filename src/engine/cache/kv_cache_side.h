// Shared base of KvImports and KvExports: the connectors, and access to the blocks of the scheduler. Used
// only on the engine thread.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/cache/tier_events.h"
#include "engine/loop/answer.h"
#include "schedule/scheduler.h"
#include "transfer/kv_connector.h"

namespace octavo {

struct KvCacheSide {
  BlockFormat format;
  Scheduler& scheduler;
  TierEvents events;
  KvTransferStats stats{};
  std::vector<std::unique_ptr<KvConnector>> connectors{};
  // Blocks that were loaded since the last KvTransfers::take_loaded(). They belong to the first group with
  // full attention or, if all groups have a window, to the first group.
  std::vector<std::int32_t> loaded{};

  // Returns the keys of the blocks that other engines may load. `tokens` is the prompt, or the prompt
  // followed by the output.
  std::vector<Hash128> keys_of(const Accepted& accepted, std::span<const TokenId> tokens) const;
  // Describes a prompt to connectors. `keys` is the result of keys_of(accepted, tokens). `tokens` and
  // `keys` must outlive the result. For `cached`, see KvPrompt.
  KvPrompt prompt_of(const Accepted& accepted, std::span<const TokenId> tokens, std::span<const Hash128> keys,
                     int cached = 0) const;

  // Holds blocks, see Scheduler::hold. Call count_held() to include them in the statistics.
  PrefixHold* hold(const Accepted& accepted, std::span<const TokenId> tokens, int blocks);
  void count_held(const PrefixHold& hold) { stats.held_blocks += static_cast<int>(hold.keys.size()); }
  // Frees the blocks, subtracts them from the statistics and sets `hold` to null. Does nothing if `hold` is
  // null.
  void let_go(PrefixHold*& hold);
  int cached_blocks(const Accepted& accepted);

  void report_stored(const PrefixHold& hold, std::span<const Hash128> keys);
  void fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message);
};

// Returns where the blocks of `hold` store these pieces.
std::vector<KvLocation> locations_of(const BlockFormat& format, const PrefixHold& hold,
                                     std::span<const KvPiece> pieces);

// Appends blocks [first, end) of the hold to `loaded`, see KvCacheSide::loaded.
void note_loaded(const Scheduler& scheduler, const PrefixHold& hold, int first, int end,
                 std::vector<std::int32_t>& loaded);

// Returns whether other engines may load the blocks of the prompt. Returns false for models with cross
// attention, because the keys of blocks do not depend on the encoder input (a sound or an encoder prompt).
bool may_travel(const Accepted& accepted);

}  // namespace octavo
