// Prefill and decode on two engines: blocks of prompts kept for others until they are fetched, and fetched
// from others. vLLM's NixlConnector flow: a request's kv_transfer_params say where its blocks are.
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
  // Listens, where blocks are to be kept for others. engine: its number, which moves the port. Errors: the
  // options are wrong, the address is taken.
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
  void note(const LoadResult& result);

  const KvTransferOptions options_;
  const BlockFormat format_;
  const CacheAccess cache_;
  std::vector<std::uint64_t> given_way_;  // owners of leases that take_stored() has not named yet

  mutable std::mutex mutex_;
  KvTransferStats loads_;  // under mutex_: the histograms alone

  LeaseTable leases_;
  std::unique_ptr<BlockServer> server_;    // where it produces
  std::unique_ptr<LeaseKeeper> keeper_;    // where it consumes
  std::unique_ptr<BlockFetcher> fetcher_;  // where it consumes
};

}  // namespace octavo
