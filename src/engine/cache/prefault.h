// Touches memory before it is used, so that the system provides it early. A page is zeroed at its first
// write, and a hypervisor may have to find it first. Untouched memory was measured at 0.3 GB/s, a tenth of
// the speed at which blocks are loaded. A low-priority thread touches the pages after those in use. It
// touches as much as is in use, within limits, so that a small cache stays small.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>

namespace octavo {

class Prefault {
 public:
  // memory: used from its beginning on; must outlive this object.
  explicit Prefault(std::span<std::byte> memory);
  ~Prefault();

  // Notes that the first `end` bytes are in use. Any thread; cheap if already noted.
  void used(std::size_t end);

 private:
  void run();

  std::span<std::byte> memory_;
  std::atomic<std::size_t> used_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
