// A file of its own, so that no compiler sees through new and delete and takes them for mismatched.
#include "sample/test_allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace octavo {
namespace {

std::atomic<long> count{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  count.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment))
    return memory;
  std::abort();
}

}  // namespace

long allocations() { return count.load(std::memory_order_relaxed); }

}  // namespace octavo

void* operator new(std::size_t bytes) { return octavo::counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return octavo::counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
