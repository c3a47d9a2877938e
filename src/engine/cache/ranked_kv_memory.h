// Exports and imports the KV blocks of an engine with several ranks on one host. Each rank has some layers
// and some heads. A piece has the same layout as in an engine with a single rank, so engines with different
// numbers of ranks can load each other's blocks.
//
// Rank 0 maps the memory of the other ranks and copies blocks without sending messages, so that steps do
// not wait. If the blocks are on GPUs, it opens their memory by CUDA IPC.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "dist/shared_memory.h"
#include "engine/cache/piece_layout.h"
#include "kernels/kv_exchange.h"
#include "transfer/kv_pieces.h"

namespace octavo {

// The part of the model's KV cache that is on one rank.
struct RankCache {
  int part = 0;  // see RankLayout::part
  int parts = 1;
  int first_layer = 0;  // first layer of the rank's pipeline stage
  CacheLayout layout{};
};

// Caches of all ranks, and the cache that the model would have on a single rank.
struct RankCaches {
  CacheLayout whole{};
  std::vector<RankCache> ranks{};
};

class RankedKvMemory {
 public:
  // `memory` has the cache of each rank, with `blocks` blocks each. `opened` and `on_devices` keep the memory
  // of other processes mapped. Returns unsupported with the reason if the blocks cannot be exported.
  static Result<RankedKvMemory> create(const RankCaches& caches, const Backend& backend, std::int64_t blocks,
                                       std::vector<std::span<std::byte>> memory,
                                       std::vector<SharedMemory> opened, std::vector<Buffer> on_devices = {});

  const PieceLayout& pieces() const { return pieces_; }
  void export_piece(KvLocation location, std::span<std::byte> out) const;
  void import_piece(KvLocation location, std::span<const std::byte> bytes) const;

 private:
  // The part of a layer's block that is on one rank. It contains the heads from first_head to first_head +
  // cache.spec.kv_heads - 1.
  struct Share {
    KvLayer cache;
    int first_head = 0;
  };

  template <class Move>
  void each_share(KvLocation location, std::size_t bytes, Move&& move) const;

  PieceLayout pieces_;
  const KvExchange* exchange_ = nullptr;
  std::vector<std::vector<Share>> shares_;  // [layer]
  std::vector<SharedMemory> opened_;
  std::vector<Buffer> on_devices_;
};

}  // namespace octavo
