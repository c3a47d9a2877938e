// The bytes behind the ids of blocks and states: one layer cache per layer, all in one allocation, and the
// states in another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/error.h"
#include "kernels/ops.h"
#include "model/cache_layout.h"

namespace octavo {

class KvMemory {
 public:
  // Room for `blocks` blocks and `slots` states. Error: the device has not got it.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                   std::int64_t slots);

  std::span<const KvLayer> layers() const { return layers_; }  // one for each layer of the model
  const View& states() const { return states_; }               // f32 [slots, CacheLayout::state_floats]

 private:
  Buffer bytes_, state_bytes_;
  View states_;
  std::vector<KvLayer> layers_;
};

}  // namespace octavo
