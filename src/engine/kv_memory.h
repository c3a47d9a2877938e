// The bytes behind the block ids: one layer cache per layer, all in one allocation.
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
  // Room for `blocks` blocks. Error: the device has not got it.
  static Result<KvMemory> allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks);

  std::span<const KvLayer> layers() const { return layers_; }  // one for each layer of the model

 private:
  Buffer bytes_;
  std::vector<KvLayer> layers_;
};

}  // namespace octavo
