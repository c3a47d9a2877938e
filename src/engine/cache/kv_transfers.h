// Transfers of KV blocks to and from other engines and the tiers below the cache. A connector knows the
// sources and destinations (transfer/kv_connector.h). This class allocates, publishes and frees blocks of the
// cache on the engine's thread.
//
// Loaded blocks enter the prefix cache before the request that waits for them is scheduled. The request then
// finds them like any cached prefix, and other requests run meanwhile. Blocks that cannot be loaded are
// computed.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/error.h"
#include "engine/cache/tier_events.h"
#include "engine/execute/executor.h"
#include "engine/loop/answer.h"
#include "schedule/scheduler.h"
#include "transfer/kv_connector.h"
#include "transfer/kv_transfer_options.h"

namespace octavo {

class KvTransfers {
 public:
  // engine: its number. events: receives the gains and losses of tiers; may be null. wake: called on any
  // thread when advance() has work. Errors: the options are invalid for this engine, or a connector does not
  // start.
  static Result<std::unique_ptr<KvTransfers>> start(const KvTransferOptions& options, int engine,
                                                    Scheduler& scheduler, Executor& executor,
                                                    KvEventLog* events, std::function<void()> wake);
  ~KvTransfers();

  // Call all functions below on the engine's thread.

  // True if the request may be scheduled. False: its blocks are being loaded; advance() returns its id when
  // it is ready.
  bool ready(const std::shared_ptr<const Accepted>& accepted, std::int64_t now_us);
  // See SequenceSpec::checkpoint. Other engines may need the whole prompt except its last token.
  int checkpoint_of(const Request& request) const;
  // Keeps the blocks of an ended request's prompt for other engines. Returns the transfer parameters of its
  // reply.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::int64_t now_us);

  // Frees blocks that are no longer needed. compute_seconds: see KvConnector::worth_loading. Returns the
  // requests that are ready now.
  std::vector<RequestId> advance(std::int64_t now_us, double compute_seconds);
  // The latest time of the next advance() call.
  std::int64_t wake_at_us() const;
  // Frees kept blocks because nothing can run without them. False: no block could be freed.
  bool give_way();

  // Frees all kept blocks that are not in use. False: a transfer still uses some; `wake` is called when it
  // ends.
  bool give_up_all(std::int64_t now_us);

  void add_stats(EngineStats& stats) const;

 private:
  // Loaded blocks of a request that waits to be scheduled.
  struct Import {
    enum class State : std::uint8_t {
      asking,  // lookup is under way
      no_room,
      behind,  // another request is loading blocks of this one
      loading,
      given_up,  // the request is computed, and its load has not ended
      done,
    };

    std::shared_ptr<const Accepted> accepted;
    std::vector<Hash128> keys{};    // see KvPrompt
    std::vector<KvPiece> pieces{};  // pieces that are being loaded
    int cached = 0;
    std::int64_t give_up_us = 0;  // state no_room: deadline of the wait for free blocks
    State state = State::done;
    PrefixHold* hold = nullptr;  // null: no blocks held, or already freed
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };
  struct Export {
    KvConnector* connector;
    PrefixHold* hold;
    std::vector<Hash128> keys;  // keys of the prompt's blocks
  };

  KvTransfers(BlockFormat format, int give_up_seconds, Scheduler& scheduler, KvEventLog* events,
              std::function<void()> wake);

  CacheAccess access(Executor& executor);
  KvPrompt prompt_of(const Accepted& accepted, std::span<const Hash128> keys, int cached = 0) const;
  Import::State begin_load(Import& entry, std::int64_t now_us);
  Import::State give_up(const Import& entry);
  void decline_all(const KvPrompt& prompt, const KvConnector* but = nullptr);
  void give_up_stuck(std::int64_t now_us, std::vector<RequestId>& ready);
  bool any_loads() const;
  bool loads(Hash128 key) const;
  void take_results(std::vector<RequestId>& ready);
  void retry(Import::State state, std::int64_t now_us, std::vector<RequestId>& ready);
  void drop_imports(bool done);
  void drop_exports(std::int64_t now_us);
  std::vector<Hash128> keys_of(const Accepted& accepted) const;
  std::vector<Hash128> extras_of(const Accepted& accepted) const;
  PrefixHold* hold(const Accepted& accepted, int blocks);
  std::vector<KvPlace> places_of(const PrefixHold& hold, std::span<const KvPiece> pieces) const;
  int cached_blocks(const Accepted& accepted);
  void take(const LoadResult& result);
  void fail(const Accepted& accepted, KvTransferFailure reason, const std::string& message);
  void tell_stored(const PrefixHold& hold, std::span<const Hash128> keys);
  void let_go(PrefixHold*& hold);

  const BlockFormat format_;
  const std::int64_t give_up_us_;  // maximum time that a request waits for free blocks
  Scheduler& scheduler_;
  const std::function<void()> wake_;
  TierEvents events_;
  double compute_seconds_ = 0;

  KvTransferStats stats_;
  std::uint64_t last_owner_ = 0;
  std::map<std::uint64_t, Export> exports_;  // by StoreTask::owner
  std::map<RequestId, Import> imports_;      // in the order of arrival

  std::mutex mutex_;
  std::vector<LoadResult> results_;  // guarded by mutex_

  std::vector<std::unique_ptr<KvConnector>> connectors_;
};

}  // namespace octavo
