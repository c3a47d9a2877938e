// A source or destination of KV blocks outside an engine's cache: another engine, or a tier below it. A
// connector is a file and a row of the table in kv_transfer_options.cc. The engine
// (engine/cache/kv_transfers.h) treats all connectors alike.
//
// A connector names pieces (kv_pieces.h) by hashes that are equal in all processes. Hashes chain all tokens
// up to a block's end, with images, adapter and salt. A connector copies the bytes on separate threads. The
// engine chooses the cache blocks for them and holds these blocks meanwhile.
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

// A prompt, as connectors see it.
struct KvPrompt {
  RequestId id = 0;
  std::string_view name{};  // name of the request
  int tokens = 0;
  std::span<const TokenId> text{};  // without the last token; empty with images
  Hash128 identity{};               // see transfer_keys()
  std::span<const Hash128> keys{};  // keys of its full blocks, except a block that the last token fills
  const KvTransferParams* params = nullptr;  // parameters of the request, or null
  int cached = 0;                            // number of leading blocks that are in the cache
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // parameters of the request, if any
  int first = 0;                  // load pieces [first, keys.size()) of the prefix
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvPlace> blocks{};  // destination of piece first + i; empty: load nothing
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // true: the request has ended
};

struct LoadResult {
  RequestId id = 0;
  int loaded = 0;  // number of loaded pieces, from `first` on
  std::array<int, kKvSources> from{};  // `loaded` by KvSource
  std::int64_t bytes = 0;
  double seconds = 0;
  std::optional<KvTransferFailure> failure{};  // reason why the load ended early
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

// Pieces of a computed prompt. No step writes their blocks until take_stored() returns the owner.
struct StoreTask {
  std::uint64_t owner = 0;        // id chosen by the engine
  int prefix = 0;                 // number of prompt blocks that the pieces belong to
  std::vector<Hash128> keys{};    // keys of all pieces of the prefix
  std::vector<KvPlace> blocks{};  // location of each piece
};

// Access to the engine's cache. The functions take (piece, contents) in BlockFormat. Any thread.
struct CacheAccess {
  std::function<void(KvPlace, std::span<std::byte>)> read{};
  std::function<void(KvPlace, std::span<const std::byte>)> write{};
  NativeBlocks native{};  // the same blocks in their native layout
  // Allocates host memory for copies of blocks.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  std::function<void(LoadResult)> loaded{};  // completes a load; called once for each task with blocks
  std::function<void()> wake{};              // called when take_stored() or matched() has a result
};

// The engine in which a connector starts.
struct KvConnectorSite {
  BlockFormat format{};
  int engine = 0;  // number of the engine
  int cache_blocks = 0;
  bool in_host_memory = true;  // location of its cache
  CacheAccess cache{};
};

// Call all functions on the engine's thread; they return at once. No callback comes after the destructor.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // Number of leading prompt blocks that can be loaded. nullopt: not known yet; call again after wake(), or
  // at wake_at_us().
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // True if loading these blocks with these pieces is faster than computing them. compute_seconds: time for
  // one prompt token; 0: unknown.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Loads whose source hangs, each reported once. The engine computes their requests; their blocks are freed
  // when CacheAccess::loaded ends them.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // The cache has no free blocks for the prompt yet. load() or decline() follows.
  virtual void wait(const KvPrompt&) {}
  // The prompt will not be loaded from this connector.
  virtual void decline(const KvPrompt&) {}

  // True: a prompt to store is followed by the tokens of its answer (KvPrompt::keys and text have both).
  virtual bool stores_answers() const { return false; }
  // True if the connector stores blocks of this computed prompt.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Stores the blocks. Returns the parameters for the request's reply, if any. A task without blocks does not
  // end.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  // Owners of completed tasks.
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // Latest time at which take_stored() or matched() has a new result.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // Ends a task because the engine needs its blocks; take_stored() returns its owner. False: no task can end
  // now.
  virtual bool give_way() = 0;

  // For a tier in this medium that only this engine uses: for each key, whether the block is stored.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Blocks that the tier has removed since the last call.
  virtual std::vector<Hash128> take_gone(KvMedium) { return {}; }
  // Blocks copied from host memory to the next tier since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
