#include "dist/shared_memory_group.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <utility>

#include "base/check.h"

namespace octavo {
namespace {

static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

// Number of spins before a rank sleeps. They take about as long as one sleep and wake-up.
constexpr int kSpins = 2000;
// ms between two calls of `check` while a rank sleeps
constexpr int kSleepMs = 50;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value, const timespec* time) {
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, time, nullptr, 0);
}

// Returns true if `count` has reached `round`; both counters may wrap around.
bool reached(std::uint32_t count, std::uint32_t round) {
  return static_cast<std::int32_t>(count - round) >= 0;
}

}  // namespace

std::size_t SharedMemoryGroup::memory_bytes(int size, std::size_t slot_bytes, std::size_t slots) {
  return static_cast<std::size_t>(size) * (sizeof(Line) + slots * slot_bytes);
}

SharedMemoryGroup::SharedMemoryGroup(std::span<std::byte> memory, SharedMemoryGroupOptions options)
    : options_(std::move(options)),
      lines_(reinterpret_cast<Line*>(memory.data())),
      slots_(memory.data() + static_cast<std::size_t>(options_.size) * sizeof(Line)) {
  CHECK(memory.size() == memory_bytes(options_.size, options_.slot_bytes, options_.slots),
        "{} bytes for {} ranks", memory.size(), options_.size);
  CHECK(options_.rank >= 0 && options_.rank < options_.size);
  CHECK(options_.slots >= 2 && std::has_single_bit(options_.slots), "{} slots", options_.slots);
}

std::byte* SharedMemoryGroup::slot(int rank) const {
  return slots_ +
         (options_.slots * static_cast<std::size_t>(rank) + round_ % options_.slots) * options_.slot_bytes;
}

// Begins a round. begin_round() and the waiting functions return false if the group has failed.
bool SharedMemoryGroup::begin_round() {
  if (failure_ || !wait_all(round_ + 2 - static_cast<std::uint32_t>(options_.slots))) return false;
  ++round_;
  return true;
}

// Reports that this rank's data of the round is in its slot.
void SharedMemoryGroup::post() {
  Line& line = lines_[options_.rank];
  line.round.store(round_, std::memory_order_seq_cst);
  if (line.waiting.load(std::memory_order_seq_cst) > 0) futex(line.round, FUTEX_WAKE, INT32_MAX, nullptr);
}

bool SharedMemoryGroup::wait_all(std::uint32_t round) {
  for (int rank = 0; rank < options_.size; ++rank)
    if (rank != options_.rank && !wait(rank, round)) return false;
  return true;
}

bool SharedMemoryGroup::wait(int rank, std::uint32_t round) {
  const Line& line = lines_[rank];
  for (int i = 0; i < (options_.spin ? kSpins : 1); ++i) {
    if (reached(line.round.load(std::memory_order_acquire), round)) return true;
    pause();
  }
  return sleep(rank, round);
}

// Sleeps until the counter changes, or for kSleepMs. The timeout counts only the time of sleeps, not wall
// time, so that processes that were all stopped and continued do not count as hung.
bool SharedMemoryGroup::sleep(int rank, std::uint32_t round) {
  Line& line = lines_[rank];
  const timespec time{.tv_sec = 0, .tv_nsec = kSleepMs * 1'000'000};
  for (int slept_ms = 0;; slept_ms += kSleepMs) {
    line.waiting.fetch_add(1, std::memory_order_seq_cst);
    const std::uint32_t count = line.round.load(std::memory_order_seq_cst);
    if (!reached(count, round)) futex(line.round, FUTEX_WAIT, count, &time);
    line.waiting.fetch_sub(1, std::memory_order_seq_cst);
    if (reached(line.round.load(std::memory_order_acquire), round)) return true;
    if (options_.check)
      if (const auto alive = options_.check(); !alive) failure_ = alive.error();
    if (timeout_ms_ > 0 && slept_ms >= timeout_ms_)
      failure_ = {ErrorCode::unavailable,
                  fmt::format("rank {} has not answered for {} ms",
                              options_.names.empty() ? rank : options_.names[static_cast<std::size_t>(rank)],
                              timeout_ms_),
                  {}};
    if (failure_) return false;
  }
}

void SharedMemoryGroup::all_reduce(std::span<float> values) {
  const std::size_t floats = options_.slot_bytes / sizeof(float);
  for (; !values.empty(); values = values.subspan(std::min(floats, values.size()))) {
    const std::span<float> part = values.first(std::min(floats, values.size()));
    if (!begin_round()) return;
    std::memcpy(slot(options_.rank), part.data(), part.size_bytes());
    post();
    if (!wait_all(round_)) return;
    add_all(part);
  }
}

// Adds all slots in the order of ranks; this rank's numbers are read directly from `own`. Works in pieces
// that fit into the L1 cache.
void SharedMemoryGroup::add_all(std::span<float> own) const {
  std::array<float, 1024> sums;
  for (std::size_t begin = 0; begin < own.size(); begin += sums.size()) {
    const std::span<float> piece = own.subspan(begin, std::min(sums.size(), own.size() - begin));
    const auto numbers = [&](int rank) {
      return rank == options_.rank ? piece.data() : reinterpret_cast<const float*>(slot(rank)) + begin;
    };
    std::copy_n(numbers(0), piece.size(), sums.data());
    for (int rank = 1; rank < options_.size; ++rank)
      std::transform(sums.data(), sums.data() + piece.size(), numbers(rank), sums.data(), std::plus<>());
    std::copy_n(sums.data(), piece.size(), piece.data());
  }
}

void SharedMemoryGroup::all_gather(std::span<const std::byte> mine, std::span<std::byte> all) {
  CHECK(all.empty() || all.size() == mine.size() * static_cast<std::size_t>(options_.size));
  for (std::size_t begin = 0; begin < mine.size(); begin += options_.slot_bytes) {
    const std::size_t bytes = std::min(options_.slot_bytes, mine.size() - begin);
    if (!begin_round()) return;
    std::memcpy(slot(options_.rank), mine.data() + begin, bytes);
    post();
    if (all.empty()) continue;
    if (!wait_all(round_)) return;
    for (int rank = 0; rank < options_.size; ++rank)
      std::memcpy(all.data() + static_cast<std::size_t>(rank) * mine.size() + begin, slot(rank), bytes);
  }
}

void SharedMemoryGroup::gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) {
  const std::size_t most = largest_part(all, starts, options_.size);
  const bool wanted = to == kEveryRank || to == options_.rank;
  for (std::size_t begin = 0; begin < most; begin += options_.slot_bytes) {
    const auto part = [&](int rank) {
      const auto r = static_cast<std::size_t>(rank);
      const std::size_t first = std::min(starts[r] + begin, starts[r + 1]);
      return all.subspan(first, std::min(options_.slot_bytes, starts[r + 1] - first));
    };
    if (!begin_round()) return;
    if (const auto own = part(options_.rank); !own.empty())
      std::memcpy(slot(options_.rank), own.data(), own.size());
    post();
    if (!wanted) continue;
    if (!wait_all(round_)) return;
    for (int rank = 0; rank < options_.size; ++rank)
      if (const auto buffer = part(rank); rank != options_.rank && !buffer.empty())
        std::memcpy(buffer.data(), slot(rank), buffer.size());
  }
}

// Each slot begins with the number of remaining bytes, including those in the slot.
void SharedMemoryGroup::broadcast(std::vector<std::byte>& message) {
  const std::size_t most = options_.slot_bytes - sizeof(std::uint64_t);
  const bool sends = options_.rank == 0;
  std::uint64_t left = message.size();
  std::size_t done = 0;
  if (!sends) message.clear();
  do {
    if (!begin_round()) return;
    std::byte* buffer = slot(0);
    if (sends) {
      std::memcpy(buffer, &left, sizeof left);
      const std::size_t bytes = std::min<std::size_t>(left, most);
      if (bytes > 0) std::memcpy(buffer + sizeof left, message.data() + done, bytes);
      post();
    } else {
      post();
      if (!wait(0, round_)) return;
      std::memcpy(&left, buffer, sizeof left);
      const std::size_t bytes = std::min<std::size_t>(left, most);
      message.insert(message.end(), buffer + sizeof left, buffer + sizeof left + bytes);
    }
    const std::size_t bytes = std::min<std::size_t>(left, most);
    done += bytes;
    left -= bytes;
  } while (left > 0);
}

void SharedMemoryGroup::broadcast(std::span<std::byte> message) {
  for (std::size_t begin = 0; begin < message.size(); begin += options_.slot_bytes) {
    const std::span<std::byte> part =
        message.subspan(begin, std::min(options_.slot_bytes, message.size() - begin));
    if (!begin_round()) return;
    if (options_.rank == 0) std::memcpy(slot(0), part.data(), part.size());
    post();
    if (options_.rank == 0) continue;
    if (!wait(0, round_)) return;
    std::memcpy(part.data(), slot(0), part.size());
  }
}

void SharedMemoryGroup::barrier() {
  if (!begin_round()) return;
  post();
  wait_all(round_);
}

}  // namespace octavo
