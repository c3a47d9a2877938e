// Memory of the KV blocks and the recurrent states. One allocation contains the blocks of all layers, and
// another one contains the states.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/error.h"
#include "dist/shared_memory.h"
#include "engine/cache/piece_layout.h"
#include "engine/cache/prefault.h"
#include "kernels/cuda_ipc.h"
#include "kernels/kv_exchange.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "transfer/native_blocks.h"

namespace octavo {

// Memory that outlives the process (KeptCache).
struct KeptBlocks {
  SharedMemory memory{};
  std::span<std::byte> bytes{};
  std::span<std::byte> states{};
};

class KvMemory {
 public:
  // Allocates `blocks` blocks and `slots` states. If `shared` is set, other processes can open the memory
  // of the blocks. If `kept` has memory, uses that memory instead of allocating. Returns an error if there
  // is not enough memory.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                   std::int64_t slots, bool shared = false, KeptBlocks kept = {});

  std::span<const KvLayer> layers() const { return layers_; }  // [layer]

  // Parts of the cache that can be exported, in a layout that is the same for all backends (KvExchange). A
  // piece is one block of all layers of a group, or a part of a state slot. If exchanges() is false,
  // nothing can be exported.
  bool exchanges() const { return exchange_ != nullptr; }
  const PieceLayout& pieces() const { return pieces_; }
  void export_piece(KvLocation location, std::span<std::byte> out) const;
  void import_piece(KvLocation location, std::span<const std::byte> bytes) const;
  // Returns the pieces in the native layout of the backend. The result is empty if the pieces are not in
  // host memory. Requires exchanges(). The result refers to this object, which must not move.
  NativeBlocks native_blocks() const;
  // Memory that other processes can open. Host memory: segment() is not empty if the blocks are shared. A
  // device's memory: device_segment() is set if the blocks are shared.
  const SharedMemory& segment() const { return segment_; }
  const std::optional<CudaMemoryHandle>& device_segment() const { return device_segment_; }
  std::span<std::byte> blocks() const { return blocks_; }

  // Starts touching host memory before it is used (Prefault).
  void prefault();
  // Reports that a block is written now or soon. Thread-safe.
  void used(std::int64_t block) const;

  // Returns all memory to the operating system. Later reads return zeros. Host memory only.
  void release();

  const View& states() const { return states_; }  // f32 [slots, CacheLayout::state_floats]

 private:
  struct Run {
    std::size_t first_layer;
    std::size_t bytes;  // bytes of one block of these layers, in the exchange layout (kernels/kv_exchange.h)
  };

  std::vector<Run> runs_of(const PieceLayout::Group& group) const;
  std::span<std::byte> state_piece(KvLocation location) const;

  Buffer bytes_, state_bytes_;
  SharedMemory segment_;  // used instead of bytes_ if the blocks are shared or kept
  std::optional<CudaMemoryHandle> device_segment_;
  std::span<std::byte> blocks_, kept_states_;
  std::size_t block_bytes_ = 0;  // bytes of a block; equal in all groups
  View states_;
  std::vector<KvLayer> layers_;
  PieceLayout pieces_;
  const KvExchange* exchange_ = nullptr;
  std::vector<std::vector<Run>> runs_;  // [group][run], in the order of the exchange layout
  bool in_host_memory_ = true;
  std::unique_ptr<Prefault> prefault_;  // last member, so that its thread ends before the memory is freed
};

}  // namespace octavo
