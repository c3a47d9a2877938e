// For tests, which link test_allocations: counts the allocations of the whole program, and has some fail.
#pragma once

#include <cstddef>

namespace octavo {

// How often operator new was called.
long allocations();

// While it is there, operator new fails for so many bytes and more.
class ScarceMemory {
 public:
  explicit ScarceMemory(std::size_t bytes);
  ~ScarceMemory();
  ScarceMemory(const ScarceMemory&) = delete;
  ScarceMemory& operator=(const ScarceMemory&) = delete;
};

}  // namespace octavo
