// KV tier on a server that several engines share (Redis, S3, or a library). Each engine can load blocks
// that another engine has computed. Stored values:
//
//   octavo:kv:<digest of the format>:<key>    a packed block (block_format.h)
//
// The server decides which blocks to keep (maxmemory-policy in Redis, lifecycle rules in S3). Each block's
// header and checksum are verified. After a failure or a timeout, the server is not used for ten seconds, and
// the engine computes prompts instead. Any thread may call the functions.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "transfer/block_format.h"
#include "transfer/tiers/block_store.h"
#include "transfer/tiers/store_client.h"

namespace octavo {

class StoreBlocks final : public BlockStore {
 public:
  // Returns an error if the URL is invalid. If the server cannot be reached, later calls try again.
  // silence_ms: time limit in ms without a byte from the server.
  static Result<std::unique_ptr<BlockStore>> open(const std::string& url, const StoreKeys& keys,
                                                  BlockFormat format, int silence_ms = 5'000);

  std::vector<bool> contains(std::span<const Hash128> keys) const override;
  bool must_look_up() const override { return true; }
  bool reachable() const override;
  std::size_t most() const override { return kKnownMax; }
  void forget_all() override;

  void look_up(std::span<const Hash128> keys) override;
  void look_up_each(std::span<const Hash128> keys) override;
  void touch(std::span<const Hash128>) override {}  // the server tracks uses
  Result<> read(Hash128 key, const TakeBlock& take) override;
  Result<> write(Hash128 key, const FillBlock& fill) override;
  void remove(std::span<const Hash128> keys) override;

 private:
  static constexpr std::size_t kKnownMax = 1 << 18;

  struct Idle {
    std::unique_ptr<StoreClient> client;
    std::int64_t since_us;
  };

  StoreBlocks(ConnectStore connect, BlockFormat format);
  std::string name_of(Hash128 key) const;
  std::vector<std::string> names_of(std::span<const Hash128> keys) const;
  Result<std::unique_ptr<StoreClient>> take_client();
  template <class Do>
  auto with_client(Do&& act) -> decltype(act(std::declval<StoreClient&>()));
  void know(Hash128 key);

  const ConnectStore connect_;
  const BlockFormat format_;
  const std::string prefix_;
  std::atomic<std::int64_t> away_until_us_ = 0;

  mutable std::mutex mutex_;                       // guards all members below
  std::vector<Idle> idle_;                         // the most recently used connection is last
  // keys that the server reported as stored
  std::unordered_set<Hash128, HashOfHash> known_;
  // all keys in known_, oldest first; may also contain duplicates and removed keys
  std::deque<Hash128> order_;
};

}  // namespace octavo
