// Interface to a place outside of the engine's cache that KV blocks are loaded from or stored to: another
// engine, or a tier (host memory, disk, store). To add a connector, write one file and one row in
// kv_transfer_options.cc. The engine (engine/cache/kv_transfers.h) calls all connectors in the same way.
//
// A connector identifies each piece (kv_pieces.h) by a hash of all tokens up to the end of its block,
// including images, adapter and salt. The hash is equal in all processes. The engine chooses the cache
// blocks to load into or store from, and reserves them until the copy ends. Connectors copy on separate
// threads.
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

// A prompt as connectors see it.
struct KvPrompt {
  RequestId id = 0;
  std::string_view name{};
  int tokens = 0;
  // tokens of the prompt without the last one; empty if the prompt has images
  std::span<const TokenId> text{};
  // see transfer_keys()
  Hash128 identity{};
  // keys of the prompt's full blocks, without the block that contains the prompt's last token
  std::span<const Hash128> keys{};
  // parameters in the request (kv_transfer_params); null if it has none
  const KvTransferParams* params = nullptr;
  // number of leading blocks that are in the engine's cache
  int cached = 0;
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // parameters in the request; empty if it has none
  int first = 0;                  // the task loads pieces [first, keys.size()) of the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  // location to load piece number first + i of the prefix into; empty: the task only ends a lease
  std::vector<KvLocation> blocks{};
  // becomes true when the request has ended
  std::shared_ptr<const std::atomic<bool>> cancelled{};
};

struct LoadResult {
  RequestId id = 0;
  int loaded = 0;  // number of pieces loaded, counted from `first`
  // pieces loaded from each source; the sum is `loaded`
  std::array<int, kKvSources> from{};
  std::int64_t bytes = 0;
  double seconds = 0;
  // why the load stopped early; nullopt: it is complete
  std::optional<KvTransferFailure> failure{};
  std::string message{};
};

// Converts the error of a failed load to the label of that failure in the metrics.
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

// Pieces of a computed prompt that a connector stores. Until take_stored() returns the owner, steps do not
// write to these blocks.
struct StoreTask {
  std::uint64_t owner = 0;        // the engine's id for this task
  int prefix = 0;                 // number of prompt blocks in the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvLocation> blocks{};
};

// Functions by which connectors access the engine's cache. Any thread may call them. A span has the layout
// of BlockFormat.
struct CacheAccess {
  std::function<void(KvLocation, std::span<std::byte>)> read{};
  std::function<void(KvLocation, std::span<const std::byte>)> write{};
  NativeBlocks native{};  // access without conversion of the layout
  // Allocates host memory for copies of blocks; with a GPU, the memory is pinned.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  // reports the result of a load; called once for each task that has blocks
  std::function<void(LoadResult)> loaded{};
  // reports that take_stored() or matched() has a new result
  std::function<void()> wake{};
};

// Arguments to start a connector.
struct KvConnectorSite {
  BlockFormat format{};
  int engine = 0;
  int cache_blocks = 0;
  bool in_host_memory = true;  // true: the engine's cache is in host memory; false: in device memory
  CacheAccess cache{};
};

// The engine's thread calls all functions, so they must not wait. After its destructor, a connector calls
// no callbacks.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // Returns the number of leading prompt blocks that can be loaded, or nullopt if it is not known yet. In
  // that case the engine calls again after CacheAccess::wake, or at wake_at_us().
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // Returns true if loading these blocks is faster than computing them. `pieces` are the pieces of the
  // blocks. compute_seconds: time to compute one prompt token; 0: unknown.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Returns requests whose loads hang, each request once. The engine then computes these prompts, and
  // reserves the destination blocks until CacheAccess::loaded reports the load.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // The prompt waits because the cache has too few free blocks. load() or decline() follows later.
  virtual void wait(const KvPrompt&) {}
  // The engine will not load this prompt from this connector, so the connector can drop what it keeps for the
  // prompt.
  virtual void decline(const KvPrompt&) {}

  // Returns true if the engine should also store output tokens. KvPrompt::keys and text then include them.
  virtual bool stores_answers() const { return false; }
  // Returns true if the connector would store blocks of this computed prompt.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Stores the blocks. Returns the kv_transfer_params for the response, if any. For a task without blocks,
  // take_stored() returns no owner.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // Returns the time in microseconds at which the engine must call take_stored() or matched() again.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // The engine needs cache blocks: ends one task, whose owner take_stored() then returns. Returns false if
  // no task can end now.
  virtual bool give_way() = 0;

  // Returns for each key whether this medium has the block. For a medium that other engines also use, all
  // values are false.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Returns the keys of blocks that the tier evicted since the last call.
  virtual std::vector<Hash128> take_removed(KvMedium) { return {}; }
  // Returns the keys of blocks that were copied from host memory to the tier below since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
