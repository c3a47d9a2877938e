#include "engine/cache/prefault.h"

#include <algorithm>

#include "base/priority.h"

namespace octavo {
namespace {

constexpr std::size_t kPage = 4096, kLeast = std::size_t{16} << 20, kMost = std::size_t{256} << 20;
constexpr std::size_t kStopping = ~std::size_t{0};

// Touches a page without changing its content, even if another thread writes this byte at the same time.
[[gnu::no_sanitize("thread")]] void touch(std::byte& page) {
  __atomic_fetch_or(reinterpret_cast<unsigned char*>(&page), 0, __ATOMIC_RELAXED);
}

}  // namespace

Prefault::Prefault(std::span<std::byte> memory) : memory_(memory), thread_([this] { run(); }) {}

Prefault::~Prefault() {
  stopping_ = true;
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

void Prefault::run() {
  lower_priority(kPrepares);
  for (std::size_t known = 0, touched = 0;;) {
    used_.wait(known);
    if (stopping_) return;
    known = used_;
    const std::size_t end = std::min(memory_.size(), known + std::clamp(known, kLeast, kMost));
    for (touched = std::max(touched, known); touched < end && !stopping_; touched += kPage)
      touch(memory_[touched]);
  }
}

}  // namespace octavo
