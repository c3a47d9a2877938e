// Stores of KV blocks: when a request has ended, the cache keeps the blocks of its prompt until connectors
// have stored them, or other engines have loaded them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "engine/cache/kv_cache_side.h"

namespace octavo {

class KvExports {
 public:
  explicit KvExports(KvCacheSide& side) : side_(side) {}

  // See KvTransfers::offer.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::span<const TokenId> text,
                                        std::int64_t now_us);
  // Frees the blocks whose stores are complete.
  void drop(std::int64_t now_us);
  // Ends a store, because the engine needs its blocks; drop() then frees them. Returns false if no store can
  // end now.
  bool give_way();

  void let_go_all();  // call after the connectors have ended
  bool empty() const { return exports_.empty(); }

 private:
  std::optional<KvTransferParams> store(KvConnector& connector, const Accepted& accepted,
                                        std::span<const TokenId> tokens, std::int64_t now_us);

  struct Export {
    PrefixHold* hold;
    std::vector<Hash128> keys;  // see KvPrompt
  };

  KvCacheSide& side_;
  std::uint64_t last_owner_ = 0;
  std::map<std::uint64_t, Export> exports_;  // stores by StoreTask::owner
};

}  // namespace octavo
