// What an engine holds for other engines: the blocks of prompts, each until it is fetched or its time is
// over.
//
// One thread, the engine's, adds leases and learns which have ended; any thread may read the blocks of one
// that lasts. Time is an argument.
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
  std::vector<Hash128> keys{};  // of each piece
  std::uint64_t owner = 0;      // the engine's name for it
  // Of the prompt, as KvPrompt: for engines whose blocks have another size, and other names.
  std::vector<TokenId> text{};
  Hash128 identity{};
};

class LeaseTable {
 public:
  explicit LeaseTable(int seconds) : duration_us_(std::int64_t{seconds} * 1'000'000) {}

  // The engine's thread.
  void add(std::string id, Lease lease, std::int64_t now_us);
  // The owners of leases that have ended; nobody reads their blocks any more.
  std::vector<std::uint64_t> take_ended(std::int64_t now_us);
  // Ends the lease that would end first, because its blocks are needed here. Nothing: there is none, but for
  // those that are being read.
  std::optional<std::uint64_t> end_first();
  // When take_ended() has something to do, if nothing happens before; INT64_MAX: never.
  std::int64_t next_end_us() const;
  // Leases that ended before anybody had fetched the blocks.
  std::int64_t expired() const;

  // Any thread: read(lease), and its time begins anew. False: there is no such lease (any more).
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
  // The blocks are fetched, or nobody will.
  void finish(const std::string& id);

 private:
  struct Entry {
    Lease lease;
    std::int64_t end_us = 0;  // 0: fetched
    int readers = 0;          // an entry that has any stays
  };

  const std::int64_t duration_us_;
  mutable std::mutex mutex_;
  std::map<std::string, Entry> leases_;
  std::int64_t expired_ = 0;
};

}  // namespace octavo
