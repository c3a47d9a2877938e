// The blocks of a cache that ranks of one host share out, layer by layer and head by head, in the layout of
// an engine that has all of them: what one rank has computed two may load, and the other way round.
//
// Rank 0 reads and writes the other ranks' blocks itself: they are in memory that it has opened, so that no
// rank is asked and no step waits.
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

// What of a model's cache a rank has.
struct RankCache {
  int part = 0;  // RankLayout::part
  int parts = 1;
  int first_layer = 0;  // of its stage
  CacheLayout layout{};
};

// Of all ranks, and of the same model on one.
struct RankCaches {
  CacheLayout whole{};
  std::vector<RankCache> ranks{};
};

class RankedKvMemory {
 public:
  // memory: of each rank, `blocks` blocks; opened[i]: keeps what is not this process's own. Errors
  // (unsupported): why they cannot leave.
  static Result<RankedKvMemory> create(const RankCaches& caches, const Backend& backend, std::int64_t blocks,
                                       std::vector<std::span<std::byte>> memory,
                                       std::vector<SharedMemory> opened);

  const PieceLayout& pieces() const { return pieces_; }
  void export_piece(KvPlace place, std::span<std::byte> out) const;
  void import_piece(KvPlace place, std::span<const std::byte> bytes) const;

 private:
  // A layer's block at a rank: heads [first_head, first_head + cache.spec.kv_heads).
  struct Share {
    KvLayer cache;
    int first_head = 0;
  };

  template <class Move>
  void each_share(KvPlace place, std::size_t bytes, Move&& move) const;

  PieceLayout pieces_;
  const KvExchange* exchange_ = nullptr;
  std::vector<std::vector<Share>> shares_;  // of each layer
  std::vector<SharedMemory> opened_;
};

}  // namespace octavo
