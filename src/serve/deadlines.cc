#include "serve/deadlines.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"
#include "serve/generation.h"

namespace octavo {

Deadlines::Deadlines() : thread_([this] { run(); }) {}

Deadlines::~Deadlines() { stop(); }

void Deadlines::stop() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Deadlines::add(std::int64_t at_us, std::weak_ptr<Generation> generation) {
  const std::lock_guard lock(mutex_);
  // Most generations end long before at_us, so entries of ended generations would accumulate.
  if (due_.size() >= cleanup_at_) {
    std::erase_if(due_, [](const auto& entry) { return entry.second.expired(); });
    cleanup_at_ = std::max(kCleanupAtLeast, 2 * due_.size());
  }
  due_.emplace(at_us, std::move(generation));
  changed_.notify_one();
}

void Deadlines::run() {
  std::unique_lock lock(mutex_);
  while (!ended_) {
    if (due_.empty()) {
      changed_.wait(lock);
      continue;
    }
    const std::int64_t wait_us = due_.begin()->first - now_us();
    if (wait_us > 0) {
      changed_.wait_for(lock, std::chrono::microseconds(wait_us));
      continue;
    }
    const auto first = due_.extract(due_.begin());
    lock.unlock();
    if (const auto generation = first.mapped().lock()) generation->wake();
    lock.lock();
  }
}

}  // namespace octavo
