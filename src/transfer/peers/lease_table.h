// Blocks of prompts that an engine keeps for other engines, until they are fetched or their lease expires.
//
// The engine's thread adds leases and takes ended ones. Any thread may read the blocks of an active lease.
// The time is an argument.
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
  std::vector<KvPlace> blocks{};
  std::vector<Hash128> keys{};
  std::uint64_t owner = 0;  // id that the engine has chosen
  // Fields of the prompt, see KvPrompt. Engines with another block size need them, because their keys differ.
  std::vector<TokenId> text{};
  Hash128 identity{};
};

class LeaseTable {
 public:
  explicit LeaseTable(int seconds) : duration_us_(std::int64_t{seconds} * 1'000'000) {}

  // Adds a lease; only on the engine's thread.
  void add(std::string id, Lease lease, std::int64_t now_us);
  // Returns the owners of ended leases whose blocks are not being read.
  std::vector<std::uint64_t> take_ended(std::int64_t now_us);
  // Ends the lease that would expire first, because the engine needs its blocks. Returns its owner, or
  // nullopt if there is no lease or all leases are being read.
  std::optional<std::uint64_t> end_first();
  // Returns the time at which take_ended() will have a result; INT64_MAX: never.
  std::int64_t next_end_us() const;
  // Returns the number of leases that expired before they were fetched.
  std::int64_t expired() const;

  // Calls read(lease) and renews the lease. Returns false if the lease is unknown or has ended. Any thread.
  template <class Read>
  bool use(const std::string& id, std::int64_t now_us, Read&& read) {
    std::unique_lock lock(mutex_);
    const auto place = leases_.find(id);
    if (place == leases_.end() || place->second.end_us <= now_us) return false;
    Entry& entry = place->second;
    entry.end_us = std::max(entry.end_us, now_us + duration_us_);
    ++entry.readers;
    lock.unlock();
    read(std::as_const(entry.lease));
    lock.lock();
    --entry.readers;
    return true;
  }
  // Ends the lease, because its blocks are fetched or not needed.
  void finish(const std::string& id);

 private:
  struct Entry {
    Lease lease;
    std::int64_t end_us = 0;  // time of expiry in microseconds; 0: the blocks are fetched
    int readers = 0;          // number of running reads; an entry with readers is not removed
  };

  const std::int64_t duration_us_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> leases_;
  std::int64_t expired_ = 0;
};

}  // namespace octavo
