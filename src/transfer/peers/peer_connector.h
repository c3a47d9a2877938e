// Connector for prefill and decode on two engines. It keeps blocks of prompts until other engines fetch them,
// and fetches blocks from other engines. As in vLLM's NixlConnector, the kv_transfer_params of a request name
// the engine that has its blocks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "transfer/kv_connector.h"
#include "transfer/kv_transfer_options.h"
#include "transfer/peers/block_fetcher.h"
#include "transfer/peers/block_server.h"
#include "transfer/peers/lease_keeper.h"
#include "transfer/peers/lease_table.h"

namespace octavo {

class PeerConnector final : public KvConnector {
 public:
  // Starts the connector, and listens if the engine is a producer. engine: index of the engine, which is
  // added to the port. Returns an error if options are invalid, or if the address is in use.
  static Result<std::unique_ptr<KvConnector>> start(KvTransferOptions options, BlockFormat format, int engine,
                                                    CacheAccess cache);

  std::optional<int> matched(const KvPrompt& prompt) override;
  bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) override;
  void load(LoadTask task) override;
  void wait(const KvPrompt& prompt) override;
  void decline(const KvPrompt& prompt) override;
  bool wants(const KvPrompt& prompt) override;
  std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task, std::int64_t now_us) override;
  std::vector<std::uint64_t> take_stored(std::int64_t now_us) override;
  std::int64_t wake_at_us() const override { return leases_.next_end_us(); }
  bool give_way() override;
  void add_stats(EngineStats& stats) const override;

 private:
  PeerConnector(KvTransferOptions options, BlockFormat format, CacheAccess cache);
  Result<> listen();
  bool leased(const KvPrompt& prompt) const;
  void note(const LoadResult& result);

  const KvTransferOptions options_;
  const BlockFormat format_;
  const CacheAccess cache_;
  std::vector<std::uint64_t> given_way_;  // owners of ended leases, for take_stored()

  mutable std::mutex mutex_;
  KvTransferStats loads_;  // guarded by mutex_; only the histograms are used

  LeaseTable leases_;
  std::unique_ptr<BlockServer> server_;    // set for producers
  std::unique_ptr<LeaseKeeper> keeper_;    // set for consumers
  std::unique_ptr<BlockFetcher> fetcher_;  // set for consumers
};

}  // namespace octavo
