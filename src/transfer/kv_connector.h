// A place for KV blocks beside an engine's own cache: another engine, a disk below it. A connector is a file and a row of
// the table in kv_transfer_options.cc; to the engine (engine/cache/kv_transfers.h) all are the same.
//
// A connector knows pieces of the past (kv_pieces.h) by the names that all processes agree on (chained hashes of
// all tokens up to a block's end, images among them, adapter and salt) and moves their bytes, on threads of its own.
// Which blocks of the cache they go to or come from, and for how long nobody else has those, is the engine's business.
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
  std::span<const TokenId> text{};  // without its last token; empty with images: not all of it is said
  Hash128 identity{};               // as transfer_keys() has it
  std::span<const Hash128> keys{};           // of its full blocks, but for one that its last token fills
  const KvTransferParams* params = nullptr;  // that the request brings; null: none
  int cached = 0;                            // blocks at the front that the cache has
};

struct LoadTask {
  RequestId id = 0;
  KvTransferParams from{};        // of the request, if it brings any
  int first = 0;                  // pieces [first, keys.size()) of the prefix are wanted
  std::vector<Hash128> keys{};    // of the prefix's pieces, from its first on
  std::vector<KvPlace> blocks{};  // where piece first + i goes; empty: none is wanted
  std::shared_ptr<const std::atomic<bool>> cancelled{};  // nobody wants them any more
};

struct LoadResult {
  RequestId id = 0;
  int loaded = 0;  // pieces first, first + 1, .. that are there
  std::int64_t bytes = 0;
  double seconds = 0;
  std::optional<KvTransferFailure> failure{};  // why there are no more
  std::string message{};
};

// What the error of a load counts as.
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

// Pieces of a prompt that has been computed. Until take_stored() names the owner they are not written.
struct StoreTask {
  std::uint64_t owner = 0;        // the engine's name for them
  int prefix = 0;                 // blocks of the prompt that the pieces are of
  std::vector<Hash128> keys{};    // of the prefix's pieces, from its first on
  std::vector<KvPlace> blocks{};  // where each of them is
};

// How the engine's cache is read and written: (piece, contents), as BlockFormat says. Any thread.
struct CacheAccess {
  std::function<void(KvPlace, std::span<std::byte>)> read{};
  std::function<void(KvPlace, std::span<const std::byte>)> write{};
  NativeBlocks native{};                     // the same blocks, without a change of layout
  // Memory of the host that blocks are copied to and from.
  std::function<Result<Buffer>(std::size_t bytes)> allocate = allocate_host;
  std::function<void(LoadResult)> loaded{};  // ends a load; once for each task that wants blocks
  std::function<void()> wake{};              // take_stored() or matched() has something
};

// The engine that a connector starts in.
struct KvConnectorSite {
  BlockFormat format{};
  int engine = 0;              // its number
  int cache_blocks = 0;
  bool in_host_memory = true;  // its cache
  CacheAccess cache{};
};

// All calls are on the engine's thread, and none waits. Whoever ends a connector has nothing more to come
// from it.
class KvConnector {
 public:
  virtual ~KvConnector() = default;

  // How many blocks of the prompt, from its first on, can be loaded as far as is known. Nothing: that is
  // being found out; wake() or wake_at_us() says when to ask again.
  virtual std::optional<int> matched(const KvPrompt& prompt) = 0;
  // Whether that many of them, which are these pieces, are better loaded than computed. compute_seconds: what a token
  // of a prompt takes here; 0: not known yet.
  virtual bool worth_loading(int blocks, std::span<const Hash128> pieces, double compute_seconds) = 0;
  virtual void load(LoadTask task) = 0;
  // Loads of which nothing may ever come, each told once: what they read from does not answer. Their requests
  // are computed; their blocks are free when CacheAccess::loaded ends them after all.
  virtual std::vector<RequestId> take_stuck(std::int64_t /*now_us*/) { return {}; }
  // There is no room for the prompt's blocks yet: load() or decline() will come.
  virtual void wait(const KvPrompt&) {}
  // Nothing of the prompt is loaded from here.
  virtual void decline(const KvPrompt&) {}

  // Whether any blocks of the prompt, which has been computed, are to be kept for it.
  virtual bool wants(const KvPrompt& prompt) = 0;
  // Takes them. What the request's reply says of it, if anything. A task without blocks has no end.
  virtual std::optional<KvTransferParams> store(const KvPrompt& prompt, StoreTask task,
                                                std::int64_t now_us) = 0;
  // Owners of tasks that have ended.
  virtual std::vector<std::uint64_t> take_stored(std::int64_t now_us) = 0;
  // When take_stored() or matched() has something, if nothing happens before.
  virtual std::int64_t wake_at_us() const { return std::numeric_limits<std::int64_t>::max(); }
  // Ends a task because its blocks are needed here: take_stored() has it. False: there is none that can be.
  virtual bool give_way() = 0;

  // Of a tier in that medium that is this engine's alone: which of the blocks it has now.
  virtual std::vector<bool> held(KvMedium, std::span<const Hash128> keys) const {
    return std::vector<bool>(keys.size());
  }
  // Blocks that such a tier had, and has no more: since the last call.
  virtual std::vector<Hash128> take_gone(KvMedium) { return {}; }
  // Blocks that it has written from host memory to a tier below: since the last call.
  virtual std::vector<Hash128> take_written_below() { return {}; }

  virtual void add_stats(EngineStats& stats) const = 0;
};

}  // namespace octavo
