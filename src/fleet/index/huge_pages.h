// Allocator that asks for huge pages, for large tables with random access. Huge pages avoid most TLB
// misses.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdlib>
#include <new>

#include "base/pages.h"

namespace octavo::fleet {

template <class T>
struct HugePages {
  using value_type = T;

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    const std::size_t align = bytes < 2 * kHugePage ? alignof(std::max_align_t) : kHugePage;
    void* data = std::aligned_alloc(align, (bytes + align - 1) / align * align);
    if (!data) throw std::bad_alloc();
    if (align == kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
    return static_cast<T*>(data);
  }
  void deallocate(T* data, std::size_t) { std::free(data); }
  bool operator==(const HugePages&) const = default;
};

}  // namespace octavo::fleet
