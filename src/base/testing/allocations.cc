// A separate file, because the compiler would otherwise inline new and delete and report a mismatch.
#include "base/testing/allocations.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace octavo {
namespace {

std::atomic<long> count{0};
std::atomic<std::size_t> failing_bytes{SIZE_MAX};

void* counted(std::size_t bytes, std::size_t alignment) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  if (bytes >= failing_bytes.load(std::memory_order_relaxed)) return nullptr;
  return std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* counted_or_thrown(std::size_t bytes, std::size_t alignment) {
  if (void* memory = counted(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

long allocations() { return count.load(std::memory_order_relaxed); }

ScarceMemory::ScarceMemory(std::size_t bytes) { failing_bytes = bytes; }
ScarceMemory::~ScarceMemory() { failing_bytes = SIZE_MAX; }

}  // namespace octavo

void* operator new(std::size_t bytes) { return octavo::counted_or_thrown(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return octavo::counted_or_thrown(bytes, static_cast<std::size_t>(alignment));
}
// std::stable_sort calls this operator. AddressSanitizer's version would return memory that free() rejects.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return octavo::counted(bytes, alignof(std::max_align_t));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
