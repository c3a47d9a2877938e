// For tests that link test_allocations: counts the program's allocations, and can make some fail.
#pragma once

#include <cstddef>

namespace octavo {

// Number of calls of operator new.
long allocations();

// While this object exists, operator new fails for this number of bytes or more.
class ScarceMemory {
 public:
  explicit ScarceMemory(std::size_t bytes);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace octavo
