#include "engine/cache/prefault.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/pages.h"
#include "base/priority.h"

namespace octavo {
namespace {

constexpr std::size_t kLeast = std::size_t{16} << 20, kMost = std::size_t{256} << 20;
constexpr std::size_t kStopping = ~std::size_t{0};
#ifdef MADV_COLLAPSE
constexpr int kCollapse = MADV_COLLAPSE;
#else
constexpr int kCollapse = 25;  // MADV_COLLAPSE, since Linux 6.1
#endif

// Writes to a page without changing its content, even if another thread writes the same byte.
[[gnu::no_sanitize("thread")]] void touch(std::byte& page) {
  __atomic_fetch_or(reinterpret_cast<unsigned char*>(&page), 0, __ATOMIC_RELAXED);
}

}  // namespace

Prefault::Prefault(std::span<std::byte> memory, bool shared)
    : memory_(memory), shared_(shared), thread_([this] { run(); }) {}

Prefault::~Prefault() {
  used_ = kStopping;
  used_.notify_one();
  thread_.join();
}

void Prefault::used(std::size_t end) {
  std::size_t before = used_.load(std::memory_order_relaxed);
  while (before < end && !used_.compare_exchange_weak(before, end)) {
  }
  if (before < end) used_.notify_one();
}

// Makes the range one huge page. Older kernels refuse, and the range then has small pages. The kernel cannot
// collapse a range without pages, so the first page is touched first.
void Prefault::join_pages(std::size_t begin) {
  if (begin % kHugePage != 0 || begin + kHugePage > memory_.size()) return;
  touch(memory_[begin]);
  madvise(memory_.data() + begin, kHugePage, kCollapse);
}

void Prefault::run() {
  lower_priority(kPrepares);
  if (shared_) madvise(memory_.data(), memory_.size(), MADV_HUGEPAGE);
  for (std::size_t known = 0, touched = 0;;) {
    used_.wait(known);
    known = used_;
    if (known == kStopping) return;
    const std::size_t end = std::min(memory_.size(), known + std::clamp(known, kLeast, kMost));
    if (!shared_) touched = std::max(touched, known);
    for (; touched < end && used_ != kStopping; touched += kPage) {
      if (shared_) join_pages(touched);
      touch(memory_[touched]);
    }
  }
}

}  // namespace octavo
