// Transfers KV blocks to and from other engines and slower cache tiers. The connectors know the sources and
// destinations (transfer/kv_connector.h). This class allocates, publishes and frees the blocks of the local
// cache. The engine loop calls it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cache/kv_exports.h"
#include "engine/cache/kv_imports.h"
#include "engine/execute/executor.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

class KvTransfers {
 public:
  // `engine` is the index of the engine. `events` receives the blocks that tiers store and remove, and may
  // be null. `wake` is called on any thread when advance() has work. Returns an error if the options are
  // not possible for this engine, or if a connector cannot start.
  static Result<std::unique_ptr<KvTransfers>> start(const KvTransferOptions& options, int engine,
                                                    Scheduler& scheduler, Executor& executor,
                                                    KvEventLog* events, std::function<void()> wake);
  ~KvTransfers();

  // Call all functions below only on the engine thread.

  // Returns whether the request may be scheduled. If not, its blocks are being loaded, and advance()
  // returns its id when it is ready.
  bool ready(const std::shared_ptr<Accepted>& accepted, std::int64_t now_us);
  // Returns SequenceSpec::checkpoint of the request. Other engines may load the whole prompt except the last
  // token, so recurrent layers need a saved state before the last token.
  int checkpoint_of(const Request& request) const;
  // Called when a sequence has ended. `text` is the prompt and the output; empty if unknown. Keeps the
  // blocks of the text for tiers that store outputs. After the request's last sequence, also keeps the
  // blocks of the prompt for all connectors. Returns the transfer parameters for the response.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::span<const TokenId> text,
                                        std::int64_t now_us);

  // Frees the blocks of completed transfers. Returns the requests that became ready. For `compute_seconds`,
  // see KvConnector::worth_loading.
  std::vector<RequestId> advance(std::int64_t now_us, double compute_seconds);
  // Returns the blocks that were loaded since the last call, see KvCacheSide::loaded.
  std::vector<std::int32_t> take_loaded() { return std::exchange(side_.loaded, {}); }
  // Returns the time at which advance() must be called at the latest, in microseconds.
  std::int64_t wake_at_us() const;
  // Frees kept blocks. Call it if there are too few free blocks for any sequence to run. Returns false if no
  // block could be freed.
  bool give_way();

  // Frees all kept blocks except those that a transfer uses. Returns false if a transfer uses some of them;
  // `wake` is called when the transfer ends.
  bool give_up_all(std::int64_t now_us);

  void add_stats(EngineStats& stats) const;

 private:
  KvTransfers(KvCacheSide side, int room_seconds, std::function<void()> wake);

  CacheAccess access(BlockExchange& exchange);

  const std::function<void()> wake_;
  KvCacheSide side_;
  KvImports imports_;
  KvExports exports_;
};

}  // namespace octavo
