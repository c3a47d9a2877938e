// Transfers of KV blocks to and from other engines and the tiers below the cache. A connector knows the
// sources and destinations (transfer/kv_connector.h). This class allocates, publishes and frees the cache's
// blocks.
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
  // engine: index of the engine. events: receives the blocks that tiers gain and lose; may be null.
  // wake: called on any thread when advance() has work. Errors: the options are invalid for this engine, or
  // a connector cannot start.
  static Result<std::unique_ptr<KvTransfers>> start(const KvTransferOptions& options, int engine,
                                                    Scheduler& scheduler, Executor& executor,
                                                    KvEventLog* events, std::function<void()> wake);
  ~KvTransfers();

  // Call all functions below on the engine's thread.

  // True if the request may be scheduled. False: its blocks are being loaded; advance() returns its id when
  // it is ready.
  bool ready(const std::shared_ptr<Accepted>& accepted, std::int64_t now_us);
  // See SequenceSpec::checkpoint. Other engines may need the whole prompt except its last token.
  int checkpoint_of(const Request& request) const;
  // Call when an answer has ended. Keeps the blocks of its text for tiers that store answers; after the
  // request's last answer, also keeps the prompt's blocks for all connectors. text: prompt and answer;
  // empty if unknown. Returns the transfer parameters for the reply.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::span<const TokenId> text,
                                        std::int64_t now_us);

  // Frees blocks that are no longer needed. Returns the requests that became ready. compute_seconds: see
  // KvConnector::worth_loading.
  std::vector<RequestId> advance(std::int64_t now_us, double compute_seconds);
  // Blocks that advance() has found loaded since the last call: see KvCacheSide::loaded.
  std::vector<std::int32_t> take_loaded() { return std::exchange(side_.loaded, {}); }
  // Time at which advance() must be called, if not before.
  std::int64_t wake_at_us() const;
  // Frees kept blocks because no sequence can run without them. False: no block could be freed.
  bool give_way();

  // Frees all kept blocks that no transfer uses. False: a transfer uses some of them; `wake` is called
  // when it ends.
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
