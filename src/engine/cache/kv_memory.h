// The bytes behind the ids of blocks and states: one layer cache per layer, all in one allocation, and the
// states in another.
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

class KvMemory {
 public:
  // Room for `blocks` blocks and `slots` states. shared: blocks are in memory that other processes can open.
  // Error: the device has not got it.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                   std::int64_t slots, bool shared = false);

  std::span<const KvLayer> layers() const { return layers_; }  // one for each layer of the model

  // Pieces of the past, to and from the layout that all backends share: a block with the layers of its group
  // one after the other (KvExchange), or a part of a slot of states. Not where exchanges() is false: they
  // stay on the device.
  bool exchanges() const { return exchange_ != nullptr; }
  const PieceLayout& pieces() const { return pieces_; }
  void export_piece(KvPlace place, std::span<std::byte> out) const;
  void import_piece(KvPlace place, std::span<const std::byte> bytes) const;
  // The same pieces as they are; nothing where they are not in host memory. Where exchanges() is true; this
  // must stay where it is.
  NativeBlocks native_blocks() const;
  // Of blocks that are shared; else empty.
  const SharedMemory& segment() const { return segment_; }

  // From now on host memory behind the blocks in use is touched before it is needed (Prefault).
  void prefault();
  // A block is written to, or will be in a moment. Any thread.
  void used(std::int64_t block) const;

  // Gives all of it back to the system, which hands out zeroed memory where it is touched again. Host memory
  // alone.
  void release();

  const View& states() const { return states_; }  // f32 [slots, CacheLayout::state_floats]

 private:
  // Layers of a group whose parts of a block go together (KvExchange::joins).
  struct Run {
    std::size_t first_layer;
    std::size_t bytes;  // outside
  };

  std::vector<Run> runs_of(const PieceLayout::Group& group) const;
  std::span<std::byte> state_piece(KvPlace place) const;

  Buffer bytes_, state_bytes_;
  SharedMemory segment_;  // in place of bytes_
  std::span<std::byte> blocks_;
  std::size_t block_bytes_ = 0;  // of any group
  View states_;
  std::vector<KvLayer> layers_;
  PieceLayout pieces_;
  const KvExchange* exchange_ = nullptr;
  std::vector<std::vector<Run>> runs_;  // of each group, in the order of their bytes outside
  bool in_host_memory_ = true;
  std::unique_ptr<Prefault> prefault_;  // last: it ends before its memory does
};

}  // namespace octavo
