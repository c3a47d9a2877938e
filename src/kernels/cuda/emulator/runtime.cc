#include "kernels/cuda/runtime.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/check.h"
#include "kernels/cuda/emulator/memory.h"

namespace octavo::cuda {
namespace {

// An allocation ends where its last page does, up to alignment; the page after it is never there.
struct Allocation {
  std::byte* pages;
  std::size_t bytes;  // of the pages, without the last
};

struct Memory {
  std::recursive_mutex mutex;
  std::map<void*, Allocation> allocations;
  int users = 0;

  void protect(int mode) {
    for (const auto& [address, a] : allocations) CHECK(mprotect(a.pages, a.bytes, mode) == 0);
  }
};
Memory& memory() {
  static Memory m;
  return m;
}

}  // namespace

namespace emulated {

DeviceMemoryAccess::DeviceMemoryAccess() {
  memory().mutex.lock();
  if (memory().users++ == 0) memory().protect(PROT_READ | PROT_WRITE);
}
DeviceMemoryAccess::~DeviceMemoryAccess() {
  if (--memory().users == 0) memory().protect(PROT_NONE);
  memory().mutex.unlock();
}

}  // namespace emulated

namespace runtime {

Result<DeviceInfo> open() { return DeviceInfo{"emulated", 4, std::size_t{8} << 30}; }
std::size_t free_bytes() { return std::size_t{8} << 30; }

Result<void*> allocate(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  constexpr std::size_t kAlignment = 256;  // as cudaMalloc's
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t padded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const std::size_t whole = (padded + page - 1) / page * page;
  void* pages = mmap(nullptr, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED)
    return failure(ErrorCode::resource_exhausted, "no {} bytes of device memory", bytes);
  auto* begin = static_cast<std::byte*>(pages);
  void* address = begin + whole - padded;
  const std::lock_guard lock(memory().mutex);
  memory().allocations[address] = {begin, whole};
  return address;
}

void release(void* device) {
  if (device == nullptr) return;
  const std::lock_guard lock(memory().mutex);
  const auto at = memory().allocations.find(device);
  CHECK(at != memory().allocations.end());
  CHECK(munmap(at->second.pages, at->second.bytes + static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) == 0);
  memory().allocations.erase(at);
}

Result<void*> allocate_pinned(std::size_t bytes) { return std::calloc(1, bytes + 1); }
void release_pinned(void* host) { std::free(host); }

StreamHandle make_stream() { return nullptr; }
void destroy_stream(StreamHandle) {}
void synchronize(StreamHandle) {}
void copy_to_device(StreamHandle, void* device, const void* host, std::size_t bytes) {
  const emulated::DeviceMemoryAccess access;
  std::memcpy(device, host, bytes);
}
void copy_to_host(StreamHandle, void* host, const void* device, std::size_t bytes) {
  const emulated::DeviceMemoryAccess access;
  std::memcpy(host, device, bytes);
}

}  // namespace runtime
}  // namespace octavo::cuda
