// The common part of loads and stores of KV blocks: the connectors, and the cache blocks that they hold. On
// the engine's thread.
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

  // tokens: the request's prompt, or a text that begins with it. Keys of the blocks that other engines may
  // need.
  std::vector<Hash128> keys_of(const Accepted& accepted, std::span<const TokenId> tokens) const;
  // keys: keys_of(accepted, tokens). Both must live as long as the result. cached: see KvPrompt.
  KvPrompt prompt_of(const Accepted& accepted, std::span<const TokenId> tokens, std::span<const Hash128> keys,
                     int cached = 0) const;

  // See Scheduler::hold. Only blocks that count_held() counts are in the statistics.
  PrefixHold* hold(const Accepted& accepted, std::span<const TokenId> tokens, int blocks);
  void count_held(const PrefixHold& hold) { stats.held_blocks += static_cast<int>(hold.keys.size()); }
  // Frees counted blocks. Null: none.
  void let_go(PrefixHold*& hold);
  int cached_blocks(const Accepted& accepted);
  std::vector<KvPlace> places_of(const PrefixHold& hold, std::span<const KvPiece> pieces) const;

  void tell_stored(const PrefixHold& hold, std::span<const Hash128> keys);
  void fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message);
};

// False for a prompt with a cross-attention source (a sound or an encoder prompt): its block names do not
// cover the source.
bool may_travel(const Accepted& accepted);

}  // namespace octavo
