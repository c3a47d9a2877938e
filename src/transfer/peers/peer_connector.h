// Connector for disaggregated prefill: one engine computes prompts and keeps their blocks until another
// engine has fetched them. As in vLLM's NixlConnector, the kv_transfer_params of a request name the engine
// that has the blocks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "transfer/kv_connector.h"
#include "transfer/kv_transfer_options.h"
#include "transfer/peers/block_server.h"
#include "transfer/peers/fetcher.h"
#include "transfer/peers/lease_keeper.h"
#include "transfer/peers/lease_table.h"

namespace octavo {

class PeerConnector final : public KvConnector {
 public:
  // A producer also listens. engine: index of this engine; its port is the configured port plus this index.
  // Returns an error if options are invalid, or if the address is in use.
  static Result<std::unique_ptr<KvConnector>> start(KvTransferOptions options, BlockFormat format, int engine,
                                                    CacheAccess cache);
  ~PeerConnector() override;

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
  Result<> start_fetcher();
  bool leased(const KvPrompt& prompt) const;
  void note(const LoadResult& result);

  const KvTransferOptions options_;
  const BlockFormat format_;
  const CacheAccess cache_;
  std::vector<std::uint64_t> given_way_;  // owners of leases that give_way() ended

  mutable std::mutex mutex_;
  // times and sizes of finished loads; only the histograms are used; guarded by mutex_
  KvTransferStats loads_;

  LeaseTable leases_;
  std::unique_ptr<BlockServer> server_;    // null unless the engine is a producer
  std::unique_ptr<LeaseKeeper> keeper_;    // null unless the engine is a consumer
  std::unique_ptr<Fetcher> fetcher_;       // null unless the engine is a consumer
};

}  // namespace octavo
