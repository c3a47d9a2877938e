#include "engine/kv_memory.h"

#include <sys/mman.h>

namespace octavo {

Result<KvMemory> KvMemory::allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                    std::int64_t slots) {
  KvMemory memory;
  memory.exchange_ = kv_exchange(backend.name);
  memory.in_host_memory_ = backend.device->shares_host_memory();
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

std::int64_t KvMemory::exchange_bytes() const {
  std::int64_t sum = 0;
  for (const KvLayer& layer : layers_)
    if (layer.data != nullptr) sum += kv_exchange_bytes(layer.spec);
  return sum;
}

NativeBlocks KvMemory::native_blocks() {
  if (!in_host_memory_) return {};
  const KvLayer& any =
      *std::ranges::find_if(layers_, [](const KvLayer& layer) { return layer.data != nullptr; });
  const auto bytes = static_cast<std::size_t>(any.stride_bytes);
  return {.layout = fmt::format("{}, {} bytes", exchange_->layout, bytes),
          .memory = [data = static_cast<std::byte*>(bytes_.data()), bytes](BlockId block) {
            return std::span(data + static_cast<std::size_t>(block) * bytes, bytes);
          }};
}

void KvMemory::release() {
  for (const Buffer* buffer : {&bytes_, &state_bytes_})
    if (buffer->bytes() > 0)
      CHECK(madvise(buffer->data(), buffer->bytes(), MADV_DONTNEED) == 0, "memory that is not page-aligned");
}

void KvMemory::export_block(std::int64_t block, std::span<std::byte> out) const {
  for (const KvLayer& layer : layers_) {
    if (layer.data == nullptr) continue;
    const auto bytes = static_cast<std::size_t>(kv_exchange_bytes(layer.spec));
    exchange_->export_block(layer, block, out.first(bytes));
    out = out.subspan(bytes);
  }
}

void KvMemory::import_block(std::int64_t block, std::span<const std::byte> bytes) const {
  for (const KvLayer& layer : layers_) {
    if (layer.data == nullptr) continue;
    const auto size = static_cast<std::size_t>(kv_exchange_bytes(layer.spec));
    exchange_->import_block(layer, block, bytes.first(size));
    bytes = bytes.subspan(size);
  }
}

}  // namespace octavo
