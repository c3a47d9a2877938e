// Has the system give memory before it is needed. A page comes, zeroed, when it is first written to; a
// hypervisor may have to find it first, and then untouched memory was seen to come at 0.3 GB/s, a tenth of
// what blocks of a cache are loaded at. A thread of low priority touches the pages behind those in use: as
// many again, within limits, so that who uses little pays little.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>

namespace octavo {

class Prefault {
 public:
  // Memory that is used from its beginning on, and must outlive this.
  explicit Prefault(std::span<std::byte> memory);
  ~Prefault();

  // The first `end` bytes are in use. Any thread; costs nothing where that is known.
  void used(std::size_t end);

 private:
  void run();

  std::span<std::byte> memory_;
  std::atomic<std::size_t> used_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
