// KV blocks that come from elsewhere and go elsewhere: other engines, tiers below the cache. What a place is,
// a connector knows (transfer/kv_connector.h); here, on the engine's thread, blocks of the cache are taken,
// published and let go.
//
// Loaded blocks go into the prefix cache, before the request that waits for them is scheduled: it then finds
// them as it finds any cached prefix, and other requests run meanwhile. What cannot be loaded, for whatever
// reason, is computed.
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
  // engine: its number. events: what tiers gain and lose goes there; null: nowhere. wake: any thread;
  // advance() has something to do. Errors: the options are wrong for this engine, a connector cannot be had.
  static Result<std::unique_ptr<KvTransfers>> start(const KvTransferOptions& options, int engine,
                                                    Scheduler& scheduler, Executor& executor,
                                                    KvEventLog* events, std::function<void()> wake);
  ~KvTransfers();

  // All below: on the engine's thread.

  // Whether a request may be scheduled. False: its blocks are being loaded, advance() will say when to ask
  // again.
  bool ready(const std::shared_ptr<const Accepted>& accepted, std::int64_t now_us);
  // See SequenceSpec::checkpoint: what others may want is the whole prompt, but for its last token.
  int checkpoint_of(const Request& request) const;
  // The request ends here: blocks of its prompt are kept for whoever wants them. What its reply says of that.
  std::optional<KvTransferParams> offer(const Accepted& accepted, std::int64_t now_us);

  // Lets go what is not needed any more. compute_seconds: see KvConnector::worth_loading. Returns the
  // requests that are ready now.
  std::vector<RequestId> advance(std::int64_t now_us, double compute_seconds);
  // When advance() is to be called, whatever happens before.
  std::int64_t wake_at_us() const;
  // Gives blocks back because nothing can run without them. False: there are none to give.
  bool give_way();

  // Gives all blocks back that can be. False: some are still read or written; wake() tells when they are not.
  bool give_up_all(std::int64_t now_us);

  void add_stats(EngineStats& stats) const;

 private:
  // Blocks for a request that waits for its turn.
  struct Import {
    enum class State : std::uint8_t {
      asking,  // what there is
      no_room,
      behind,  // another request is loading blocks of this one
      loading,
      given_up,  // it is computed, and what loads its blocks has not ended
      done,
    };

    std::shared_ptr<const Accepted> accepted;
    std::vector<Hash128> keys{};    // see KvPrompt
    std::vector<KvPiece> pieces{};  // that are being loaded
    int cached = 0;
    std::int64_t give_up_us = 0;  // no_room: until then
    State state = State::done;
    PrefixHold* hold = nullptr;  // null: there is none, or it has been given back
    std::shared_ptr<std::atomic<bool>> cancelled = std::make_shared<std::atomic<bool>>(false);
  };
  struct Export {
    KvConnector* connector;
    PrefixHold* hold;
    std::vector<Hash128> keys;  // of the prompt's blocks
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
  const std::int64_t give_up_us_;  // that a request waits for room
  Scheduler& scheduler_;
  const std::function<void()> wake_;
  TierEvents events_;
  double compute_seconds_ = 0;

  KvTransferStats stats_;
  std::uint64_t last_owner_ = 0;
  std::map<std::uint64_t, Export> exports_;  // by StoreTask::owner
  std::map<RequestId, Import> imports_;      // in the order of arrival

  std::mutex mutex_;
  std::vector<LoadResult> results_;  // under mutex_

  std::vector<std::unique_ptr<KvConnector>> connectors_;
};

}  // namespace octavo
