// For tests that link test_allocations: counts allocations, and can make large ones fail.
#pragma once

#include <cstddef>

namespace octavo {

// calls of operator new so far
long allocations();

// While this object exists, operator new fails for at least this number of bytes.
class ScarceMemory {
 public:
  explicit ScarceMemory(std::size_t bytes);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace octavo
