// The bytes behind the block ids: one layer cache per layer, cut from a few large allocations.
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
  // One allocation per plane, `blocks` blocks each. Layers of different cache groups share a plane: a block belongs to one
  // group at a time.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks);

  std::span<const KvLayer> layers() const { return layers_; }  // one for each layer of the model

 private:
  std::vector<Buffer> planes_;
  std::vector<KvLayer> layers_;
};

}  // namespace octavo
