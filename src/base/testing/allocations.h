// For tests that link test_allocations: counts the allocations of the program, and can make some of them
// fail.
#pragma once

#include <cstddef>

namespace octavo {

// Number of calls of operator new so far.
long allocations();

// While this object exists, operator new fails for sizes of at least this number of bytes.
class ScarceMemory {
 public:
  explicit ScarceMemory(std::size_t bytes);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace octavo
