// Memory of the KV blocks and of the recurrent states. One allocation contains the blocks of all layers,
// another one the states.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/error.h"
#include "dist/shared_memory.h"
#include "engine/cache/piece_layout.h"
#include "engine/cache/prefault.h"
#include "kernels/kv_exchange.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "transfer/native_blocks.h"

namespace octavo {

// Memory of blocks and states that outlives the process (KeptCache).
struct KeptBlocks {
  SharedMemory memory{};
  std::span<std::byte> bytes{};   // part of the memory with the blocks
  std::span<std::byte> states{};  // part with the slots of recurrent states
};

class KvMemory {
 public:
  // Allocates `blocks` blocks and `slots` states. shared: whether other processes may open the memory of the
  // blocks. kept: memory for blocks and states, if it is mapped. Returns an error if memory does not suffice.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                   std::int64_t slots, bool shared = false, KeptBlocks kept = {});

  std::span<const KvLayer> layers() const { return layers_; }  // KV cache of each layer of the model

  // Pieces of the cache in the layout that all backends share (KvExchange). A piece is a block, with the
  // layers of its group one after another, or a part of a state slot. If exchanges() is false, pieces cannot
  // be exported.
  bool exchanges() const { return exchange_ != nullptr; }
  const PieceLayout& pieces() const { return pieces_; }
  void export_piece(KvPlace place, std::span<std::byte> out) const;
  void import_piece(KvPlace place, std::span<const std::byte> bytes) const;
  // Returns the same pieces in the native layout; empty if they are not in host memory. Requires exchanges().
  // The result refers to this object, which must not move.
  NativeBlocks native_blocks() const;
  // Memory of shared blocks; empty if they are not shared.
  const SharedMemory& segment() const { return segment_; }

  // Starts to touch host memory ahead of its use (Prefault).
  void prefault();
  // Reports that a block is written now or soon. Any thread.
  void used(std::int64_t block) const;

  // Returns all memory to the operating system; later accesses read zeros. Only for host memory.
  void release();

  const View& states() const { return states_; }  // f32 [slots, CacheLayout::state_floats]

 private:
  // Consecutive layers of a group whose parts of a block are copied together (KvExchange::joins).
  struct Run {
    std::size_t first_layer;
    std::size_t bytes;  // size in the shared layout
  };

  std::vector<Run> runs_of(const PieceLayout::Group& group) const;
  std::span<std::byte> state_piece(KvPlace place) const;

  Buffer bytes_, state_bytes_;
  SharedMemory segment_;  // replaces bytes_ for shared and for kept blocks
  std::span<std::byte> blocks_, kept_states_;
  std::size_t block_bytes_ = 0;  // size of a block; equal in all groups
  View states_;
  std::vector<KvLayer> layers_;
  PieceLayout pieces_;
  const KvExchange* exchange_ = nullptr;
  std::vector<std::vector<Run>> runs_;  // per group: runs, in the order of the shared layout
  bool in_host_memory_ = true;
  std::unique_ptr<Prefault> prefault_;  // last member, so that it ends before its memory is freed
};

}  // namespace octavo
