// Logs which contents the prefix cache stores and removes. The event publisher and remote routers read the
// log.
//
// The log is a ring buffer with one writer (the engine thread) and one reader. The constructor allocates
// all memory, and the writer never waits. If the reader is so slow that the ring is full, new events are
// lost. When the ring has space again, the pool logs all contents again (BlockPool::log_all).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace octavo {

// Where a content is stored: in the blocks of the pool, or in a slower cache tier.
enum class KvMedium : std::uint8_t { device, host, storage };

struct KvEvent {
  enum class Kind : std::uint8_t {
    stored,
    removed,
    cleared,  // all contents of all media were removed
  };
  Kind kind = Kind::cleared;
  int group = 0;
  Hash128 key = {};
  Hash128 parent_key = {};  // key of the previous block; zero for the first block
  Hash128 extra = {};
  KvMedium medium = KvMedium::device;  // medium that stores the content or has removed it
};

class KvEventLog {
 public:
  // The ring can hold at least two events for each block of the pool.
  KvEventLog(int num_blocks, int block_size)
      : block_size_(static_cast<std::size_t>(block_size)),
        events_(static_cast<std::size_t>(std::max(2 * num_blocks + 2, 16384))),
        tokens_(events_.size() * block_size_) {}

  // --- Called by the writer ---

  // Returns false if the ring is full. The event and all later events are then lost until resume() is
  // called.
  bool write(const KvEvent& event, std::span<const std::int32_t> tokens = {});

  bool losing() const { return losing_; }
  // Returns whether `events` more events fit into the ring.
  bool has_room(std::size_t events) const { return events_.size() - (written_ - read_.load()) >= events; }
  void resume() { losing_ = false; }
  // Events are lost from now on, until the pool logs all contents.
  void lose() { losing_ = true; }
  // Returns the number of `cleared` events so far. A `cleared` event makes all earlier events obsolete.
  std::uint64_t clears() const { return clears_; }

  // Makes all written events visible to the reader. Called once per step.
  void flush() {
    if (visible_.load(std::memory_order_relaxed) == written_) return;
    visible_.store(written_, std::memory_order_release);
    wake();
  }
  // Must be called after the last flush(). wait() then returns false once all events are read.
  void close() {
    closed_.store(true);
    wake();
  }

  // --- Called by the reader ---

  bool wait();

  // Removes at most `most` visible events in order, and calls visit(const KvEvent&, std::span<const int32>
  // tokens) for each. `tokens` has block_size elements; they are valid only for Kind::stored.
  template <class Visit>
  void take(std::size_t most, Visit&& visit) {
    std::uint64_t at = read_.load(std::memory_order_relaxed);
    const std::uint64_t end = std::min<std::uint64_t>(visible_.load(std::memory_order_acquire), at + most);
    for (; at != end; ++at) {
      const std::size_t index = at % events_.size();
      visit(events_[index], std::span(tokens_).subspan(index * block_size_, block_size_));
    }
    read_.store(at, std::memory_order_release);
  }

 private:
  void wake() {
    signal_.fetch_add(1);
    signal_.notify_one();
  }

  std::size_t block_size_;
  std::vector<KvEvent> events_;
  std::vector<std::int32_t> tokens_;  // [events, block_size]
  std::uint64_t written_ = 0;         // number of events that were written, visible or not
  bool losing_ = false;
  std::uint64_t clears_ = 0;
  std::atomic<std::uint64_t> visible_ = 0;
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint32_t> signal_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace octavo
