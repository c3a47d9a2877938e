// Prefill and decode on two engines, from this one's view: prompts whose blocks it keeps for others, and
// prompts whose blocks it fetches.
//
// Fetched blocks go into the prefix cache, before the request that waits for them is scheduled: it then finds
// them as it finds any cached prefix. What cannot be fetched, for whatever reason, is computed. Bytes move on
// the threads of the transfer room; here, on the engine's thread, blocks are taken, published and let go.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/answer.h"
#include "engine/executor.h"
#include "schedule/scheduler.h"
#include "transfer/block_fetcher.h"
#include "transfer/block_server.h"
#include "transfer/kv_transfer_options.h"
#include "transfer/lease_table.h"

namespace octavo {

class KvTransfers {
 public:
  // Listens, where blocks are to be kept for others. engine: its number, which moves the port. wake: any
  // thread; advance() has something to do. Errors: the options are wrong for this engine, its address is
  // taken.
  static Result<std::unique_ptr<KvTransfers>> start(KvTransferOptions options, int engine,
                                                    Scheduler& scheduler, Executor& executor,
                                                    std::function<void()> wake);
  ~KvTransfers();

  // All below: on the engine's thread.

  // Whether a request may be scheduled. False: its blocks are being fetched, advance() will say when to ask
  // again.
  bool ready(const std::shared_ptr<const Accepted>& accepted);
  // What another engine must know to decode the request that ends here; its blocks are kept from now on.
  // Nothing: it has not asked for it.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::int64_t now_us);

  // Lets go what is not needed any more. Returns the requests that are ready now.
  std::vector<RequestId> advance(std::int64_t now_us);
  // When advance() is to be called, whatever happens before.
  std::int64_t wake_at_us() const { return leases_.next_end_us(); }
  // Gives blocks back because nothing can run without them. False: there are none to give.
  bool give_way();

  void add_stats(EngineStats& stats) const;

 private:
  // Blocks for a request that waits for its turn.
  struct Import {
    std::shared_ptr<const Accepted> accepted;
    PrefixHold* hold = nullptr;  // null: there is none, or it has been given back
    bool fetching = false;
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };

  KvTransfers(KvTransferOptions options, BlockFormat format, Scheduler& scheduler, Executor& executor,
              std::function<void()> wake);

  bool begin_fetch(Import& entry);
  void give_lease_back(const KvTransferParams& from);
  std::vector<Hash128> transfer_keys(const Accepted& accepted, int blocks) const;
  void take(const FetchResult& result);
  void fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message);
  void let_go(PrefixHold*& hold);

  const KvTransferOptions options_;
  const BlockFormat format_;
  Scheduler& scheduler_;
  const std::function<void()> wake_;
  const PrefixHasher hasher_;  // the same in all engines

  KvTransferStats stats_;
  std::uint64_t last_lease_ = 0;
  std::map<std::uint64_t, PrefixHold*> leased_;  // by Lease::owner
  std::map<RequestId, Import> imports_;          // in the order of arrival

  std::mutex mutex_;
  std::vector<FetchResult> results_;  // under mutex_

  LeaseTable leases_;
  std::unique_ptr<BlockServer> server_;    // where it produces
  std::unique_ptr<BlockFetcher> fetcher_;  // where it consumes
};

}  // namespace octavo
