// Interface for loading KV blocks from, and storing them to, another engine or a tier (host memory, disk,
// store). To add a connector, write one file and one row in kv_transfer_options.cc. The engine
// (engine/cache/kv_transfers.h) calls all connectors in the same way.
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

// A prompt that is looked up, loaded or stored.
struct KvPrompt {
  RequestId id = 0;
  std::string_view name{};
  int tokens = 0;
  // the prompt's tokens except the last one; empty if the prompt has images
  std::span<const TokenId> text{};
  // see transfer_keys()
  Hash128 identity{};
  // keys of the prompt's full blocks, except a block that contains the prompt's last token
  std::span<const Hash128> keys{};
  // kv_transfer_params of the request; null if the request has none
  const KvTransferParams* params = nullptr;
  // number of leading blocks that are in the engine's cache
  int cached = 0;
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // kv_transfer_params of the request; empty if it has none
  int first = 0;                  // the task loads pieces [first, keys.size()) of the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  // blocks[i]: destination of piece first + i of the prefix; empty: the task only ends a lease
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

// Pieces of a computed prompt that a connector stores. Until take_stored() returns `owner`, no step writes to
// these blocks.
struct StoreTask {
  std::uint64_t owner = 0;        // the engine's id for this task
  int prefix = 0;                 // number of prompt blocks in the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvLocation> blocks{};
};

// Functions by which connectors access the engine's cache. Any thread may call them. A span has the contents
// of one block (block_format.h).
struct CacheAccess {
  std::function<void(KvLocation, std::span<std::byte>)> read{};
  std::function<void(KvLocation, std::span<const std::byte>)> write{};
  NativeBlocks native{};  // access in the layout of the engine's memory
  // Allocates host memory for copies of blocks; with a GPU, the memory is pinned.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  // called with the result of a load, once for each task that has blocks
  std::function<void(LoadResult)> loaded{};
  // called when take_stored() or matched() has a new result
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

// The engine's thread calls all functions, so they must not wait. After the destructor, no function of
// CacheAccess is called.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // Returns the number of leading prompt blocks that can be loaded, or nullopt if it is not known yet. In
  // that case the engine calls again after CacheAccess::wake, or at wake_at_us().
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // Returns true if loading these blocks is faster than computing them. pieces: keys of all pieces of the
  // blocks. compute_seconds: time to compute one prompt token; 0: unknown.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Returns requests whose loads hang, each request once. The engine then computes these prompts. It keeps
  // the destination blocks reserved until CacheAccess::loaded reports the load.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // Called when the prompt must wait because the cache has too few free blocks. load() or decline() follows.
  virtual void wait(const KvPrompt&) {}
  // Called when the engine will not load this prompt from this connector. The connector can drop all data
  // that it has for the prompt.
  virtual void decline(const KvPrompt&) {}

  // Returns true if the engine should also store output tokens. KvPrompt::keys and text then include them.
  virtual bool stores_answers() const { return false; }
  // Returns true if the connector would store blocks of this computed prompt.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Stores the blocks. Returns the kv_transfer_params for the response, if any. take_stored() later returns
  // the task's owner, unless the task has no blocks.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // Returns the time in microseconds at which the engine must call take_stored() or matched() again.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // Called when the engine needs free cache blocks. Ends one or more store tasks early; take_stored() then
  // returns their owners. Returns false if no task can end now.
  virtual bool give_way() = 0;

  // Returns for each key whether the medium has the block. If other engines also use the medium, all values
  // are false.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Returns the keys of blocks that the medium has lost since the last call.
  virtual std::vector<Hash128> take_removed(KvMedium) { return {}; }
  // Returns the keys of blocks that were copied from host memory to the tier below it since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
