// What happens to the prefix cache, told to others as it happens: which contents came, which went.
//
// A ring between the engine's thread, which writes, and one reader. Everything is allocated by the
// constructor; the writer never waits. When the reader is so late that the ring is full, events are lost: the
// pool then tells everything anew (BlockPool::tell_all) as soon as there is room.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"

namespace octavo {

// Where a content is: in the pool's blocks, or in a tier below them.
enum class KvMedium : std::uint8_t { device, host, storage };

struct KvEvent {
  enum class Kind : std::uint8_t {
    stored,   // a content can be found from now on
    removed,  // it cannot any more
    cleared,  // none can, in no medium
  };
  Kind kind = Kind::cleared;
  int group = 0;            // the cache group
  Hash128 key = {};         // of the content, see BlockContent
  Hash128 parent_key = {};  // of the block before it; all zero: there is none
  Hash128 extra = {};
  KvMedium medium = KvMedium::device;  // of what was stored or removed
};

class KvEventLog {
 public:
  // For a pool of so many blocks: holds all its contents at least twice.
  KvEventLog(int num_blocks, int block_size)
      : block_size_(static_cast<std::size_t>(block_size)),
        events_(static_cast<std::size_t>(std::max(2 * num_blocks + 2, 16384))),
        tokens_(events_.size() * block_size_) {}

  // --- The writer ---

  // False, and from then on until resume(): there is no room, the event is lost.
  bool write(const KvEvent& event, std::span<const std::int32_t> tokens = {});

  bool losing() const { return losing_; }
  // Whether what was lost can be made good by `events` new ones.
  bool has_room(std::size_t events) const { return events_.size() - (written_ - read_.load()) >= events; }
  void resume() { losing_ = false; }
  // How often `cleared` was written: what was told before that is told for nothing.
  std::uint64_t clears() const { return clears_; }

  // What was written since the last call becomes visible: the events of one step.
  void flush() {
    if (visible_.load(std::memory_order_relaxed) == written_) return;
    visible_.store(written_, std::memory_order_release);
    wake();
  }
  // After the last flush: wait() returns false once all is read.
  void close() {
    closed_.store(true);
    wake();
  }

  // --- The reader ---

  // Waits for events. False: the log was closed, and all events are read.
  bool wait();

  // Takes what is visible, at most `most` events, in order: visit(const KvEvent&, std::span<const int32>
  // tokens), with block_size tokens of a stored content.
  template <class Visit>
  void take(std::size_t most, Visit&& visit) {
    std::uint64_t at = read_.load(std::memory_order_relaxed);
    const std::uint64_t end = std::min<std::uint64_t>(visible_.load(std::memory_order_acquire), at + most);
    for (; at != end; ++at) {
      const std::size_t place = at % events_.size();
      visit(events_[place], std::span(tokens_).subspan(place * block_size_, block_size_));
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
  std::uint64_t written_ = 0;         // events, known to the writer alone
  bool losing_ = false;
  std::uint64_t clears_ = 0;
  std::atomic<std::uint64_t> visible_ = 0;
  std::atomic<std::uint64_t> read_ = 0;
  std::atomic<std::uint32_t> signal_ = 0;
  std::atomic<bool> closed_ = false;
};

}  // namespace octavo
