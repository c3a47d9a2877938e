// Interface to a source or destination of KV blocks outside of an engine's cache: another engine, or a tier
// below the cache. A connector is one file, and one row of the table in kv_transfer_options.cc. The engine
// (engine/cache/kv_transfers.h) treats all connectors in the same way.
//
// A connector identifies pieces (kv_pieces.h) by hashes that are equal in all processes. A hash covers all
// tokens up to a block's end, with images, adapter and salt. A connector copies the bytes on separate
// threads. The engine chooses the cache blocks for them and keeps these blocks reserved during the copy.
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

// Parts of a prompt that connectors use.
struct KvPrompt {
  RequestId id = 0;
  std::string_view name{};  // name of the request
  int tokens = 0;
  std::span<const TokenId> text{};  // tokens of the prompt without the last one; empty if the prompt has
                                    // images
  Hash128 identity{};               // see transfer_keys()
  std::span<const Hash128> keys{};  // keys of the prompt's full blocks, except a block that contains the last
                                    // token
  const KvTransferParams* params = nullptr;  // transfer parameters of the request; null if it has none
  int cached = 0;                            // number of blocks, from the first on, that are in the cache
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // transfer parameters of the request; empty if it has none
  int first = 0;                  // the task loads pieces [first, keys.size()) of the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvPlace> blocks{};  // destination of piece first + i; empty: the task loads no blocks
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // becomes true when the request has ended
};

struct LoadResult {
  RequestId id = 0;
  int loaded = 0;  // number of loaded pieces, from `first` on
  std::array<int, kKvSources> from{};  // number of loaded pieces for each KvSource
  std::int64_t bytes = 0;
  double seconds = 0;
  std::optional<KvTransferFailure> failure{};  // reason why the load ended early; nullopt: the load is
                                               // complete
  std::string message{};
};

// Returns the metric label for the error of a load.
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

// Pieces of a computed prompt to store. Steps do not write their blocks until take_stored() returns the
// owner.
struct StoreTask {
  std::uint64_t owner = 0;        // id that the engine has chosen
  int prefix = 0;                 // number of prompt blocks in the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvPlace> blocks{};
};

// Functions to access the engine's cache. They receive (piece, contents in BlockFormat). Any thread.
struct CacheAccess {
  std::function<void(KvPlace, std::span<std::byte>)> read{};
  std::function<void(KvPlace, std::span<const std::byte>)> write{};
  NativeBlocks native{};  // the same blocks in their native layout
  // Allocates memory for copies of blocks.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  std::function<void(LoadResult)> loaded{};  // completes a load; called once for each task with blocks
  std::function<void()> wake{};              // called when take_stored() or matched() has a new result
};

// Properties of the engine for which a connector starts.
struct KvConnectorSite {
  BlockFormat format{};
  int engine = 0;
  int cache_blocks = 0;
  bool in_host_memory = true;  // whether the engine's cache is in host memory
  CacheAccess cache{};
};

// All functions are called on the engine's thread and must return without waiting. A connector calls no
// callbacks after its destructor.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // Returns the number of prompt blocks, from the first on, that can be loaded. nullopt: not known yet; the
  // engine calls again after CacheAccess::wake, or at wake_at_us().
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // Returns true if loading these blocks, which consist of `pieces`, is faster than computing them.
  // compute_seconds: time for one prompt token in seconds; 0: unknown.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Returns the loads whose source hangs, each once. The engine computes their prompts. It frees their blocks
  // when CacheAccess::loaded ends the loads.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // Called if the cache does not have enough free blocks for the prompt yet. load() or decline() follows.
  virtual void wait(const KvPrompt&) {}
  // Called when the prompt will not be loaded from this connector.
  virtual void decline(const KvPrompt&) {}

  // Returns true if store() should get the prompt together with the output tokens (KvPrompt::keys and text
  // then contain both).
  virtual bool stores_answers() const { return false; }
  // Returns true if the connector stores blocks of this computed prompt.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Stores the blocks. Returns the transfer parameters for the response, if any. take_stored() does not
  // return tasks without blocks.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // Returns the latest time, in microseconds, at which take_stored() or matched() has a new result.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // Ends a task because the engine needs its blocks; take_stored() then returns its owner. Returns false if
  // no task can end now.
  virtual bool give_way() = 0;

  // Returns for each key whether the block is stored in this medium. Only for tiers that no other engine
  // uses.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Returns the keys of blocks that the tier has removed since the last call.
  virtual std::vector<Hash128> take_gone(KvMedium) { return {}; }
  // Returns the keys of blocks that were copied from host memory to the next tier since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
