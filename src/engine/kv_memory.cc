#include "engine/kv_memory.h"

namespace octavo {

Result<KvMemory> KvMemory::allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks) {
  KvMemory memory;
  const std::int64_t stride = layout.plane_bytes(backend);
  for (int plane = 0; plane < layout.planes; ++plane) {
    TRY(Buffer buffer, backend.device->allocate(static_cast<std::size_t>(stride * blocks)));
    memory.planes_.push_back(std::move(buffer));
  }
  for (const LayerPlace& place : layout.layers) {
    auto* data = static_cast<std::byte*>(memory.planes_[static_cast<std::size_t>(place.plane)].data());
    memory.layers_.push_back({data, blocks, stride, place.kv});
  }
  return memory;
}

}  // namespace octavo
