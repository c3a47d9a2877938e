#include "engine/cache/prefault.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "base/pages.h"

namespace octavo {
namespace {

constexpr std::size_t kMiB = 1 << 20;

class Untouched {
 public:
  explicit Untouched(std::size_t size, bool shared = false)
      : memory_(static_cast<std::byte*>(mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                             (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_ANONYMOUS, -1, 0)),
                size) {}
  ~Untouched() { munmap(memory_.data(), memory_.size()); }

  std::span<std::byte> all() const { return memory_; }
  std::size_t resident() const {
    std::vector<unsigned char> pages(memory_.size() / kPage);
    EXPECT_EQ(mincore(memory_.data(), memory_.size(), pages.data()), 0);
    return kPage * static_cast<std::size_t>(std::ranges::count(pages, 1));
  }
  void wait_resident(std::size_t bytes) const {
    while (resident() < bytes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  std::span<std::byte> memory_;
};

TEST(Prefault, TouchesAsMuchAgainAsIsUsed) {
  const Untouched memory(96 * kMiB);
  Prefault prefault(memory.all());
  EXPECT_EQ(memory.resident(), 0u);  // nothing is touched before the first used()
  prefault.used(kMiB);
  memory.wait_resident(16 * kMiB);  // at least this much memory is touched
  prefault.used(kPage);             // reported before, so nothing happens
  prefault.used(24 * kMiB);
  memory.wait_resident(40 * kMiB);  // 17 to 24 MiB are not touched, because they are already in use
  EXPECT_LE(memory.resident(), 50 * kMiB);
  prefault.used(96 * kMiB);
}

// Pages of shared memory that are in use become parts of huge pages, and keep their contents.
TEST(Prefault, WhatIsWrittenMeanwhileStays) {
  for (const bool shared : {false, true}) {
    const Untouched memory(64 * kMiB, shared);
    {
      Prefault prefault(memory.all(), shared);
      for (std::size_t end = kPage; end <= 64 * kMiB; end += kPage) {
        prefault.used(end);
        std::ranges::fill(memory.all().subspan(end - kPage, kPage), std::byte{7});
      }
    }
    EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(memory.all(), std::byte{7})), 64 * kMiB);
  }
}

}  // namespace
}  // namespace octavo
