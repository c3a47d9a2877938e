// Exports KV blocks. After a request has ended, the cache keeps the blocks of its prompt until the
// connectors have stored them, or until other engines have loaded them. KvTransfers calls it.
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
  void drop(std::int64_t now_us);
  // Cancels a store because the engine needs the blocks; the next drop() frees them. Returns false if no
  // store can be cancelled now.
  bool give_way();

  void let_go_all();  // call it after the connectors are destroyed
  bool empty() const { return exports_.empty(); }

 private:
  std::optional<KvTransferParams> store(KvConnector& connector, const Accepted& accepted,
                                        std::span<const TokenId> tokens, std::int64_t now_us);

  struct Export {
    PrefixHold* hold;
    std::vector<Hash128> keys;
  };

  KvCacheSide& side_;
  std::uint64_t last_owner_ = 0;
  std::map<std::uint64_t, Export> exports_;  // by StoreTask::owner
};

}  // namespace octavo
