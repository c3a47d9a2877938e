#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace octavo {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

void release(void* data, std::size_t bytes) { munmap(data, bytes); }

}  // namespace

Result<Buffer> allocate_host(std::size_t bytes) {
  if (bytes == 0) return Buffer{};
  // What is large begins where a huge page can.
  const std::size_t spare = bytes >= kHugePage ? kHugePage : 0;
  void* all = mmap(nullptr, bytes + spare, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == MAP_FAILED)
    return failure(ErrorCode::resource_exhausted, "no memory for {} bytes: {}", bytes, std::strerror(errno));
  auto* data = static_cast<std::byte*>(all);
  if (spare > 0) {
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(all) % kHugePage;
    if (before > 0) munmap(data, before);
    data += before;
    const std::size_t end = (bytes + 4095) / 4096 * 4096;
    munmap(data + end, bytes + spare - before - end);
    madvise(data, bytes, MADV_HUGEPAGE);  // a wish; refusal changes nothing
  }
  return Buffer(data, bytes, release);
}

}  // namespace octavo
