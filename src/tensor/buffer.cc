#include "tensor/buffer.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

#include "base/pages.h"

namespace octavo {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{256} << 20;
constexpr std::size_t kLargestPacked = kChunkBytes / 4;

constexpr std::size_t up(std::size_t bytes, std::size_t unit) { return (bytes + unit - 1) / unit * unit; }

void release(void* data, std::size_t bytes) { munmap(data, bytes); }

// Maps zeroed memory that is aligned to `alignment`. Returns nullptr if there is not enough memory.
std::byte* map_aligned(std::size_t bytes, std::size_t alignment) {
  const std::size_t wanted = up(bytes, kPage);
  const std::size_t all = wanted + alignment;
  void* begin = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const std::size_t before = -reinterpret_cast<std::uintptr_t>(begin) % alignment;
  auto* data = static_cast<std::byte*>(begin) + before;
  if (before > 0) munmap(begin, before);
  if (alignment > before) munmap(data + wanted, alignment - before);
  return data;
}

std::byte* map_with_huge_pages(std::size_t bytes, std::size_t alignment) {
  std::byte* data = map_aligned(bytes, alignment);
  if (data != nullptr) madvise(data, bytes, MADV_HUGEPAGE);  // Asks for huge pages. The system may ignore it.
  return data;
}

// Header at the start of a chunk. A chunk is aligned to its size, so that release() finds this header.
struct Chunk {
  std::atomic<std::size_t> users;

  // Returns the buffer's pages to the system at once, even if other buffers still use the chunk: an adapter
  // may be unloaded while the model's weights stay.
  static void release(void* data, std::size_t bytes) {
    if (bytes > 0) madvise(data, up(bytes, kPage), MADV_DONTNEED);
    auto* chunk =
        reinterpret_cast<Chunk*>(reinterpret_cast<std::uintptr_t>(data) / kChunkBytes * kChunkBytes);
    if (chunk->users.fetch_sub(1, std::memory_order_acq_rel) == 1) munmap(chunk, kChunkBytes);
  }
};

// The chunk from which new buffers are allocated. This reference also counts as a user, so the chunk is not
// freed while it can be filled.
struct Filling {
  std::mutex mutex;
  Chunk* chunk = nullptr;
  std::size_t used = kChunkBytes;
};
Filling filling;

auto no_memory(std::size_t bytes) {
  return failure(ErrorCode::resource_exhausted, "cannot allocate {} bytes: {}", bytes, std::strerror(errno));
}

}  // namespace

Result<Buffer> allocate_host(std::size_t bytes) {
  if (bytes == 0) return Buffer{};
  std::byte* data = bytes >= kHugePage ? map_with_huge_pages(bytes, kHugePage) : map_aligned(bytes, kPage);
  if (data == nullptr) return no_memory(bytes);
  return Buffer(data, bytes, release);
}

Result<Buffer> allocate_host_packed(std::size_t bytes) {
  if (bytes == 0 || bytes > kLargestPacked) return allocate_host(bytes);
  const std::lock_guard lock(filling.mutex);
  if (filling.used + bytes > kChunkBytes) {
    std::byte* data = map_with_huge_pages(kChunkBytes, kChunkBytes);
    if (data == nullptr) return no_memory(bytes);
    if (filling.chunk != nullptr) Chunk::release(filling.chunk, 0);
    filling.chunk = new (data) Chunk{1};
    filling.used = kPage;
  }
  std::byte* data = reinterpret_cast<std::byte*>(filling.chunk) + filling.used;
  filling.used += up(bytes, kPage);
  filling.chunk->users.fetch_add(1, std::memory_order_relaxed);
  return Buffer(data, bytes, Chunk::release);
}

}  // namespace octavo
