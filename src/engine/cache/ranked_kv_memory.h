// KV blocks that the ranks of one host share: each rank has some layers and some heads. A piece has the
// layout of an engine with a single rank, so engines with different numbers of ranks can load each other's
// blocks.
//
// Rank 0 opens the memory of the other ranks and copies their blocks itself. So it sends no messages, and
// steps do not wait.
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

// Part of the model's KV cache on one rank.
struct RankCache {
  int part = 0;  // see RankLayout::part
  int parts = 1;
  int first_layer = 0;  // first layer of the rank's stage
  CacheLayout layout{};
};

// Caches of all ranks, and the cache that the same model would have on a single rank.
struct RankCaches {
  CacheLayout whole{};
  std::vector<RankCache> ranks{};
};

class RankedKvMemory {
 public:
  // memory: cache of each rank, with `blocks` blocks. opened[i]: object that keeps another process's memory
  // open. Returns unsupported with the reason if the blocks cannot be exported.
  static Result<RankedKvMemory> create(const RankCaches& caches, const Backend& backend, std::int64_t blocks,
                                       std::vector<std::span<std::byte>> memory,
                                       std::vector<SharedMemory> opened);

  const PieceLayout& pieces() const { return pieces_; }
  void export_piece(KvPlace place, std::span<std::byte> out) const;
  void import_piece(KvPlace place, std::span<const std::byte> bytes) const;

 private:
  // Part of a layer's block on one rank: heads [first_head, first_head + cache.spec.kv_heads).
  struct Share {
    KvLayer cache;
    int first_head = 0;
  };

  template <class Move>
  void each_share(KvPlace place, std::size_t bytes, Move&& move) const;

  PieceLayout pieces_;
  const KvExchange* exchange_ = nullptr;
  std::vector<std::vector<Share>> shares_;  // shares of each layer
  std::vector<SharedMemory> opened_;
};

}  // namespace octavo
