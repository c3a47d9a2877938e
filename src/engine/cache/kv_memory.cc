#include "engine/cache/kv_memory.h"

#include <sys/mman.h>

#include <algorithm>

namespace octavo {

namespace {

Error no_room(std::size_t bytes, const Error& error) {
  return {
      error.code,
      fmt::format("the KV cache needs {} bytes: set a lower --kv-cache-memory-bytes or --max-model-len ({})",
                  bytes, error.message),
      error.field};
}

}  // namespace

Result<KvMemory> KvMemory::allocate(const CacheLayout& layout, Backend& backend, std::int64_t blocks,
                                    std::int64_t slots, bool shared, KeptBlocks kept) {
  KvMemory memory;
  memory.exchange_ = kv_exchange(backend.name);
  memory.in_host_memory_ = backend.device->shares_host_memory();
  memory.pieces_ = PieceLayout::of(layout);
  memory.block_bytes_ = static_cast<std::size_t>(layout.block_bytes(backend.ops));
  const std::size_t bytes = memory.block_bytes_ * static_cast<std::size_t>(blocks);
  const auto state_bytes = static_cast<std::size_t>(slots * layout.state_bytes());
  const bool is_kept = !kept.memory.bytes().empty();
  if (is_kept) {
    CHECK(kept.bytes.size() >= bytes && kept.states.size() >= state_bytes, "{} and {} bytes for {} and {}",
          kept.bytes.size(), kept.states.size(), bytes, state_bytes);
    memory.blocks_ = kept.bytes.first(bytes);
    memory.segment_ = std::move(kept.memory);
  } else if (shared && bytes > 0 && memory.in_host_memory_) {
    auto created = SharedMemory::create(bytes);
    if (!created) return std::unexpected(no_room(bytes, created.error()));
    memory.segment_ = *std::move(created);
    memory.blocks_ = memory.segment_.bytes();
  } else {
    auto allocated = backend.device->allocate(bytes);
    if (!allocated) return std::unexpected(no_room(bytes, allocated.error()));
    memory.bytes_ = *std::move(allocated);
    memory.blocks_ = {static_cast<std::byte*>(memory.bytes_.data()), bytes};
    if (shared && bytes > 0) {
      TRY(memory.device_segment_, cuda_share(memory.bytes_.data()));
    }
  }
  for (int layer = 0; layer < static_cast<int>(layout.layers.size()); ++layer)
    memory.layers_.push_back(layout.layer(backend.ops, memory.blocks_.data(), blocks, layer));
  if (memory.exchanges())
    for (const PieceLayout::Group& group : memory.pieces_.groups)
      memory.runs_.push_back(memory.runs_of(group));
  if (layout.state_floats == 0) return memory;
  if (is_kept) {
    memory.kept_states_ = kept.states.first(state_bytes);
    memory.states_ = View::of(memory.kept_states_.data(), DType::f32, {slots, layout.state_floats});
    return memory;
  }
  TRY(memory.state_bytes_, backend.device->allocate(state_bytes));
  memory.states_ = memory.state_bytes_.view(DType::f32, {slots, layout.state_floats});
  return memory;
}

std::vector<KvMemory::Run> KvMemory::runs_of(const PieceLayout::Group& group) const {
  std::vector<Run> runs;
  for (const std::size_t layer : group.layers) {
    const auto bytes = static_cast<std::size_t>(kv_exchange_bytes(layers_[layer].spec));
    if (exchange_->joins && !runs.empty() &&
        layers_[runs.back().first_layer].data + runs.back().bytes == layers_[layer].data) {
      runs.back().bytes += bytes;
    } else {
      runs.push_back({layer, bytes});
    }
  }
  return runs;
}

std::span<std::byte> KvMemory::state_piece(KvLocation location) const {
  const View state = states_.rows(location.number, 1);
  const std::span all(reinterpret_cast<std::byte*>(state.as<float>()),
                      static_cast<std::size_t>(state.bytes()));
  const auto piece = static_cast<std::size_t>(pieces_.piece_bytes);
  const std::size_t begin = (static_cast<std::size_t>(location.part) - pieces_.groups.size()) * piece;
  return all.subspan(begin, std::min(all.size() - begin, piece));
}

void KvMemory::prefault() {
  if (in_host_memory_ && !blocks_.empty())
    prefault_ = std::make_unique<Prefault>(blocks_, segment_.fd() >= 0);
}

void KvMemory::used(std::int64_t block) const {
  if (prefault_) prefault_->used(static_cast<std::size_t>(block + 1) * block_bytes_);
}

NativeBlocks KvMemory::native_blocks() const {
  if (!in_host_memory_) return {};
  return {.layout = fmt::format("{}, {} bytes", exchange_->layout, block_bytes_),
          .memory = [this](KvLocation location) {
            if (!pieces_.is_state(location.part)) used(location.number);
            return pieces_.is_state(location.part)
                       ? state_piece(location)
                       : blocks_.subspan(static_cast<std::size_t>(location.number) * block_bytes_,
                                         block_bytes_);
          }};
}

void KvMemory::release() {
  const bool ahead = prefault_ != nullptr;
  prefault_.reset();
  for (const Buffer* buffer : {&bytes_, &state_bytes_})
    if (buffer->bytes() > 0)
      CHECK(madvise(buffer->data(), buffer->bytes(), MADV_DONTNEED) == 0, "memory that is not page-aligned");
  for (const std::span<std::byte> shared :
       {segment_.fd() >= 0 ? blocks_ : std::span<std::byte>(), kept_states_})
    if (!shared.empty())
      CHECK(madvise(shared.data(), shared.size(), MADV_REMOVE) == 0,
            "shared memory that cannot be given back");
  if (ahead) prefault();
}

void KvMemory::export_piece(KvLocation location, std::span<std::byte> out) const {
  if (pieces_.is_state(location.part)) {
    const std::span<const std::byte> piece = state_piece(location);
    std::ranges::copy(piece, out.begin());
    out = out.subspan(piece.size());
  } else {
    for (const Run& run : runs_[static_cast<std::size_t>(location.part)]) {
      exchange_->export_block(layers_[run.first_layer], location.number, out.first(run.bytes));
      out = out.subspan(run.bytes);
    }
  }
  std::ranges::fill(out, std::byte{});
}

void KvMemory::import_piece(KvLocation location, std::span<const std::byte> bytes) const {
  if (pieces_.is_state(location.part)) {
    const std::span<std::byte> piece = state_piece(location);
    std::ranges::copy(bytes.first(piece.size()), piece.begin());
    return;
  }
  used(location.number);
  for (const Run& run : runs_[static_cast<std::size_t>(location.part)]) {
    exchange_->import_block(layers_[run.first_layer], location.number, bytes.first(run.bytes));
    bytes = bytes.subspan(run.bytes);
  }
}

}  // namespace octavo
