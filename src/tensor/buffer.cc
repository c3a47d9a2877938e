#include "tensor/buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

namespace octavo {

Result<Buffer> allocate_host(std::size_t bytes) {
  if (bytes == 0) return Buffer{};
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    return failure(ErrorCode::resource_exhausted, "no memory for {} bytes: {}", bytes, std::strerror(errno));
  constexpr std::size_t kWorthHugePages = std::size_t{4} << 20;
  if (bytes >= kWorthHugePages) madvise(data, bytes, MADV_HUGEPAGE);  // a wish; refusal changes nothing
  return Buffer(data, bytes, [](void* p, std::size_t n) { munmap(p, n); });
}

}  // namespace octavo
