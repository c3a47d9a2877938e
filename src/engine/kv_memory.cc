#include "engine/kv_memory.h"

namespace octavo {

Result<KvMemory> KvMemory::allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                    std::int64_t slots) {
  KvMemory memory;
  TRY(memory.bytes_,
      backend.device->allocate(static_cast<std::size_t>(layout.block_bytes(backend.ops) * blocks)));
  auto* data = static_cast<std::byte*>(memory.bytes_.data());
  for (int layer = 0; layer < static_cast<int>(layout.layers.size()); ++layer)
    memory.layers_.push_back(layout.layer(backend.ops, data, blocks, layer));
  if (layout.state_floats == 0) return memory;
  TRY(memory.state_bytes_, backend.device->allocate(static_cast<std::size_t>(slots * layout.state_bytes())));
  memory.states_ = memory.state_bytes_.view(DType::f32, {slots, layout.state_floats});
  return memory;
}

}  // namespace octavo
