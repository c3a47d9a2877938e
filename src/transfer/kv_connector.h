// A place for KV blocks beside an engine's own cache: another engine, a disk below it. A connector is a file
// and a row of the table in kv_transfer_options.cc; to the engine (engine/cache/kv_transfers.h) all are the
// same.
//
// A connector names pieces (kv_pieces.h) by hashes that all processes agree on: chained over all tokens up to
// a block's end, with images, adapter and salt. It moves their bytes on its own threads. The engine chooses
// the blocks of its cache that they go to or come from, and holds those blocks meanwhile.
#pragma once

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

// A prompt, as a connector sees it.
struct KvPrompt {
  RequestId id = 0;
  std::string_view name{};  // the request's
  int tokens = 0;
  std::span<const TokenId> text{};  // without its last token; empty with images
  Hash128 identity{};               // as transfer_keys() has it
  std::span<const Hash128> keys{};  // of its full blocks, except one that its last token fills
  const KvTransferParams* params = nullptr;  // of the request; null: none
  int cached = 0;                            // blocks at the front that the cache has
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // of the request, if any
  int first = 0;                  // pieces [first, keys.size()) of the prefix are wanted
  std::vector<Hash128> keys{};    // of the prefix's pieces, from its first on
  std::vector<KvPlace> blocks{};  // where piece first + i goes; empty: none is wanted
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // true: the request has ended
};

struct LoadResult {
  RequestId id = 0;
  int loaded = 0;  // number of loaded pieces, from `first` on
  std::int64_t bytes = 0;
  double seconds = 0;
  std::optional<KvTransferFailure> failure{};  // why the load ended early
  std::string message{};
};

// The metric's reason for the error of a load.
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
  std::uint64_t owner = 0;        // id that the engine chose
  int prefix = 0;                 // blocks of the prompt that the pieces are of
  std::vector<Hash128> keys{};    // of the prefix's pieces, from its first on
  std::vector<KvPlace> blocks{};  // where each of them is
};

// Access to the engine's cache: (piece, contents), in BlockFormat. Any thread.
struct CacheAccess {
  std::function<void(KvPlace, std::span<std::byte>)> read{};
  std::function<void(KvPlace, std::span<const std::byte>)> write{};
  NativeBlocks native{};                     // the same blocks, without a change of layout
  // Allocates host memory for copies of blocks.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  std::function<void(LoadResult)> loaded{};  // ends a load; called once for each task with blocks
  std::function<void()> wake{};              // take_stored() or matched() has something
};

// The engine that a connector starts in.
struct KvConnectorSite {
  BlockFormat format{};
  int engine = 0;  // its number
  int cache_blocks = 0;
  bool in_host_memory = true;  // its cache
  CacheAccess cache{};
};

// All calls are on the engine's thread and return at once. After the destructor, no callback comes.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // Number of the prompt's blocks, from its first on, that can be loaded. nullopt: not known yet; wake() or
  // wake_at_us() says when to call again.
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // Whether loading this number of blocks, which have these pieces, is faster than computing them.
  // compute_seconds: time of a prompt token here; 0: unknown.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Loads that hang because their source does not answer, each reported once. Their requests are computed;
  // their blocks are freed when CacheAccess::loaded ends them.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // The cache has no free blocks for the prompt yet: load() or decline() follows.
  virtual void wait(const KvPrompt&) {}
  // The prompt is not loaded from here.
  virtual void decline(const KvPrompt&) {}

  // Whether the connector wants blocks of this computed prompt.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Takes them. Returns the parameters for the request's reply, if any. A task without blocks does not end.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  // Owners of ended tasks.
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // When take_stored() or matched() has news at the latest.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // Ends a task because the engine needs its blocks; take_stored() returns it. False: no task can end now.
  virtual bool give_way() = 0;

  // For a tier of this medium that only this engine uses: for each key, whether the block is stored.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Blocks that such a tier has removed since the last call.
  virtual std::vector<Hash128> take_gone(KvMedium) { return {}; }
  // Blocks written from host memory to a tier below since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
