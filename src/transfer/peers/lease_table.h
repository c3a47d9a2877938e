// Leases of a producer. A lease keeps the blocks of a prompt until a consumer has fetched them, or until
// the lease expires. The engine's thread adds and ends leases; any thread may read blocks of an active
// lease.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "transfer/kv_pieces.h"

namespace octavo {

struct Lease {
  std::vector<KvLocation> blocks{};
  std::vector<Hash128> keys{};
  std::uint64_t owner = 0;  // StoreTask::owner
  // See KvPrompt. The producer needs these fields to compute keys for a consumer with another block size.
  std::vector<TokenId> text{};
  Hash128 identity{};
};

class LeaseTable {
 public:
  explicit LeaseTable(int seconds) : duration_us_(std::int64_t{seconds} * 1'000'000) {}

  // Only the engine's thread may call add(), take_ended() and end_first().
  void add(std::string id, Lease lease, std::int64_t now_us);
  // Returns the owners of leases that have ended and whose blocks no thread reads any more.
  std::vector<std::uint64_t> take_ended(std::int64_t now_us);
  // Ends the lease that expires first, because the engine needs its blocks. Returns its owner, or nullopt if
  // there are no leases or threads are reading the blocks of all leases.
  std::optional<std::uint64_t> end_first();
  // Returns the time in microseconds at which the first lease expires. Returns 0 if a lease can end now,
  // because its blocks were fetched, and INT64_MAX if there are no leases.
  std::int64_t next_end_us() const;
  // Returns the number of leases that expired before a consumer fetched the blocks.
  std::int64_t expired() const;

  // Renews the lease and calls read(lease). During the call, the blocks are not freed. Returns false if the
  // lease is unknown or has ended. Any thread may call it.
  template <class Read>
  bool use(const std::string& id, std::int64_t now_us, Read&& read) {
    std::unique_lock lock(mutex_);
    const auto found = leases_.find(id);
    if (found == leases_.end() || found->second.end_us <= now_us) return false;
    Entry& entry = found->second;
    entry.end_us = std::max(entry.end_us, now_us + duration_us_);
    ++entry.readers;
    lock.unlock();
    read(std::as_const(entry.lease));
    lock.lock();
    --entry.readers;
    return true;
  }
  // Ends the lease, because its blocks were fetched or are not needed.
  void finish(const std::string& id);

 private:
  struct Entry {
    Lease lease;
    // expiry in microseconds; 0: the blocks were fetched
    std::int64_t end_us = 0;
    // number of threads that read the blocks; the entry is kept while this is above 0
    int readers = 0;
  };

  const std::int64_t duration_us_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> leases_;
  std::int64_t expired_ = 0;
};

}  // namespace octavo
