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
  // engine: index of the engine. events: receives the blocks that tiers gain and lose; may be null. wake:
  // called on any thread when advance() has work. Returns an error if the options are invalid for this
  // engine, or if a connector cannot start.
  static Result<std::unique_ptr<KvTransfers>> start(const KvTransferOptions& options, int engine,
                                                    Scheduler& scheduler, Executor& executor,
                                                    KvEventLog* events, std::function<void()> wake);
  ~KvTransfers();

  // All functions below are called on the engine's thread.

  // Returns true if the request may be scheduled. If false, its blocks are being loaded; advance() returns
  // its id when it is ready.
  bool ready(const std::shared_ptr<Accepted>& accepted, std::int64_t now_us);
  // Returns the checkpoint for SequenceSpec::checkpoint. Other engines may need the complete prompt except
  // its last token.
  int checkpoint_of(const Request& request) const;
  // Called when an answer has ended. It keeps the blocks of the text for tiers that store answers. After the
  // request's last answer, it also keeps the prompt's blocks for all connectors. text: prompt and output;
  // empty if unknown. Returns the transfer parameters for the response.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::span<const TokenId> text,
                                        std::int64_t now_us);

  // Frees blocks that are no longer needed. Returns the requests that became ready. compute_seconds: see
  // KvConnector::worth_loading.
  std::vector<RequestId> advance(std::int64_t now_us, double compute_seconds);
  // Returns the blocks that advance() has found loaded since the last call: see KvCacheSide::loaded.
  std::vector<std::int32_t> take_loaded() { return std::exchange(side_.loaded, {}); }
  // Returns the latest time at which advance() must be called, in microseconds.
  std::int64_t wake_at_us() const;
  // Frees kept blocks, because no sequence can run without them. Returns false if no block could be freed.
  bool give_way();

  // Frees all kept blocks that no transfer uses. Returns false if a transfer uses some of them; `wake` is
  // called when it ends.
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
