// The bytes behind the ids of blocks and states: one layer cache per layer, all in one allocation, and the
// states in another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/kv_exchange.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"
#include "transfer/native_blocks.h"

namespace octavo {

class KvMemory {
 public:
  // Room for `blocks` blocks and `slots` states. Error: the device has not got it.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                   std::int64_t slots);

  std::span<const KvLayer> layers() const { return layers_; }  // one for each layer of the model
  // One block, all layers one after the other, to and from the layout that all backends share
  // (KvExchange). Not where exchanges() is false: the blocks stay on the device.
  bool exchanges() const { return exchange_ != nullptr; }
  std::int64_t exchange_bytes() const;
  void export_block(std::int64_t block, std::span<std::byte> out) const;
  void import_block(std::int64_t block, std::span<const std::byte> bytes) const;
  // The same blocks as they are; nothing where they are not in host memory. Where exchanges() is true.
  NativeBlocks native_blocks();

  // Gives all of it back to the system, which hands out zeroed memory where it is touched again. Host memory alone.
  void release();

  const View& states() const { return states_; }               // f32 [slots, CacheLayout::state_floats]

 private:
  Buffer bytes_, state_bytes_;
  View states_;
  std::vector<KvLayer> layers_;
  const KvExchange* exchange_ = nullptr;
  bool in_host_memory_ = true;
};

}  // namespace octavo
