// Touches memory before its use, so that the operating system provides its pages early. The first write to a
// page is slow: the system zeroes the page, and a hypervisor may have to allocate it. Untouched memory was
// measured at 0.3 GB/s, a tenth of the speed at which blocks are loaded. A low-priority thread touches the
// pages after those in use. The number of touched pages is about that of the pages in use, so a small cache
// stays small.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <thread>

namespace octavo {

class Prefault {
 public:
  // memory: is used from its first byte on; must outlive this object. shared: whether the memory is a mapped
  // file. By default, Linux gives such memory no huge pages, so the thread requests them for each range, also
  // for ranges that are in use.
  explicit Prefault(std::span<std::byte> memory, bool shared = false);
  ~Prefault();

  // Reports that the first `end` bytes are in use. Any thread; cheap if it was reported before.
  void used(std::size_t end);

 private:
  void run();
  void join_pages(std::size_t begin);

  std::span<std::byte> memory_;
  const bool shared_;
  std::atomic<std::size_t> used_ = 0;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace octavo
