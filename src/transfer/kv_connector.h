// A source or destination of KV blocks outside an engine's cache: another engine, or a tier below the
// cache. A connector is one file, and one row of the table in kv_transfer_options.cc. The engine
// (engine/cache/kv_transfers.h) treats all connectors in the same way.
//
// A connector identifies pieces (kv_pieces.h) by hashes that are equal in all processes. A hash covers all
// tokens up to a block's end, with images, adapter and salt. A connector copies the bytes on separate
// threads. The engine chooses the cache blocks for them and keeps these blocks reserved meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "kv/events.h"
#include "request/engine_stats.h"
#include "request/kv_transfer.h"
#include "request/request.h"
#include "tensor/buffer.h"
#include "transfer/kv_pieces.h"
#include "transfer/native_blocks.h"

namespace octavo {

// The parts of a prompt that connectors use.
struct KvPrompt {
  RequestId id = 0;
  std::string_view name{};  // name of the request
  int tokens = 0;
  std::span<const TokenId> text{};  // tokens of the prompt without the last one; empty if it has images
  Hash128 identity{};               // see transfer_keys()
  std::span<const Hash128> keys{};  // keys of its full blocks, except a block that contains the last token
  const KvTransferParams* params = nullptr;  // parameters of the request; null: none
  int cached = 0;                            // number of leading blocks that are in the cache
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // parameters of the request; empty: none
  int first = 0;                  // load pieces [first, keys.size()) of the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvPlace> blocks{};  // destination of piece first + i; empty: load nothing
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // set to true when the request has ended
};

struct LoadResult {
  RequestId id = 0;
  int loaded = 0;  // number of loaded pieces, from `first` on
  std::array<int, kKvSources> from{};  // `loaded` for each KvSource
  std::int64_t bytes = 0;
  double seconds = 0;
  std::optional<KvTransferFailure> failure{};  // reason why the load ended early; nullopt: it is complete
  std::string message{};
};

// Metric label for the error of a load.
constexpr KvTransferFailure failure_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::unavailable:
      return KvTransferFailure::unreachable;
    case ErrorCode::invalid_argument:
      return KvTransferFailure::mismatch;
    case ErrorCode::corrupt:
      return KvTransferFailure::corrupt;
    default:
      return KvTransferFailure::lost;
  }
}

// Pieces of a computed prompt to store. No step writes their blocks until take_stored() returns the owner.
struct StoreTask {
  std::uint64_t owner = 0;        // id chosen by the engine
  int prefix = 0;                 // number of prompt blocks in the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvPlace> blocks{};
};

// Functions to access the engine's cache. They take (piece, contents in BlockFormat). Any thread.
struct CacheAccess {
  std::function<void(KvPlace, std::span<std::byte>)> read{};
  std::function<void(KvPlace, std::span<const std::byte>)> write{};
  NativeBlocks native{};  // the same blocks in their native layout
  // For copies of blocks.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  std::function<void(LoadResult)> loaded{};  // completes a load; call once for each task with blocks
  std::function<void()> wake{};              // call when take_stored() or matched() has a new result
};

// Properties of the engine in which a connector starts.
struct KvConnectorSite {
  BlockFormat format{};
  int engine = 0;
  int cache_blocks = 0;
  bool in_host_memory = true;  // true: the engine's cache is in host memory
  CacheAccess cache{};
};

// All functions are called on the engine's thread and must return at once. No callback may come after the
// destructor.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // Number of leading prompt blocks that can be loaded. nullopt: not known yet; the engine calls again
  // after CacheAccess::wake, or at wake_at_us().
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // True if loading these blocks, which consist of `pieces`, is faster than computing them.
  // compute_seconds: time for one prompt token; 0: unknown.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Returns the loads whose source hangs, each once. The engine computes their prompts. It frees their
  // blocks when CacheAccess::loaded ends the loads.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // Called when the cache has no free blocks for the prompt yet. load() or decline() follows.
  virtual void wait(const KvPrompt&) {}
  // Called when the prompt will not be loaded from this connector.
  virtual void decline(const KvPrompt&) {}

  // True: store() gets a prompt together with the tokens of its answer (KvPrompt::keys and text contain
  // both).
  virtual bool stores_answers() const { return false; }
  // True if the connector stores blocks of this computed prompt.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Stores the blocks. Returns the parameters for the request's reply, if any. For a task without blocks,
  // take_stored() returns nothing.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // Time at which take_stored() or matched() has a new result, at the latest.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // Ends a task because the engine needs its blocks; take_stored() then returns its owner. False: no task
  // can end now.
  virtual bool give_way() = 0;

  // For each key, true if the block is stored in this medium. Only for tiers that no other engine uses.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Returns the keys of blocks that the tier has removed since the last call.
  virtual std::vector<Hash128> take_gone(KvMedium) { return {}; }
  // Returns the keys of blocks copied from host memory to the next tier since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
