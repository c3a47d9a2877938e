#include "kv/events.h"

#include "base/check.h"

namespace octavo {

bool KvEventLog::write(const KvEvent& event, std::span<const std::int32_t> tokens) {
  if (losing_) return false;
  if (!has_room(1)) {
    losing_ = true;
    return false;
  }
  CHECK(tokens.empty() || tokens.size() == block_size_, "{} tokens in a block of {}", tokens.size(),
        block_size_);
  const std::size_t index = written_++ % events_.size();
  events_[index] = event;
  clears_ += event.kind == KvEvent::Kind::cleared;
  std::ranges::copy(tokens, tokens_.begin() + static_cast<std::ptrdiff_t>(index * block_size_));
  return true;
}

bool KvEventLog::wait() {
  for (;;) {
    const std::uint32_t signal = signal_.load();
    if (visible_.load(std::memory_order_acquire) != read_.load(std::memory_order_relaxed)) return true;
    if (closed_.load()) return false;
    signal_.wait(signal);
  }
}

}  // namespace octavo
