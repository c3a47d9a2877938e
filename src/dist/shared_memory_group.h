// A group of ranks on one host, over shared memory.
//
// An operation takes one round, or several rounds if the data is larger than a slot. In a round, each rank
// writes its slot and increments its round counter. Then it waits for the counters of the ranks that it
// reads, and reads their slots. A rank uses its N slots one after the other. If a rank's counter is r, the
// rank has read everything of round r - 1. So before a rank writes round r + 1, it waits until its readers
// have begun round r + 2 - N. It never overwrites a slot that is still being read, and may be N - 1 rounds
// ahead of its readers.
//
// A rank that waits spins for a short time, then sleeps on a futex.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "dist/process_group.h"

namespace octavo {

struct SharedMemoryGroupOptions {
  int rank = 0;
  int size = 1;
  // Called several times per second during a wait. It must return an error if another rank is dead, which
  // ends the wait. May be empty.
  std::function<Result<>()> check = {};
  // Ranks spin before they sleep. Set this to false if there are more ranks than processors.
  bool spin = true;
  std::size_t slot_bytes = std::size_t{1} << 20;
  std::size_t slots = 2;  // number of slots per rank; a power of two, because the round counter wraps around
  std::vector<int> names = {};  // numbers of the ranks in error messages; empty: 0 to size - 1
};

class SharedMemoryGroup final : public ProcessGroup {
 public:
  static std::size_t memory_bytes(int size, std::size_t slot_bytes = SharedMemoryGroupOptions{}.slot_bytes,
                                  std::size_t slots = SharedMemoryGroupOptions{}.slots);
  // `memory` has memory_bytes(size, slot_bytes, slots) bytes, which are initially zero and shared by all
  // ranks. It must outlive the group.
  SharedMemoryGroup(std::span<std::byte> memory, SharedMemoryGroupOptions options);

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  void all_reduce(std::span<float> values) override;
  void all_gather(std::span<const std::byte> mine, std::span<std::byte> all) override;
  void gather(std::span<std::byte> all, std::span<const std::size_t> starts, int to) override;
  void broadcast(std::vector<std::byte>& message) override;
  void broadcast(std::span<std::byte> message) override;
  void barrier() override;
  void set_timeout_ms(int ms) override { timeout_ms_ = ms; }
  const std::optional<Error>& failure() const override { return failure_; }

 private:
  // State of a rank that other ranks read. It has a separate cache line.
  struct alignas(64) Line {
    std::atomic<std::uint32_t> round;
    std::atomic<std::uint32_t> waiting;  // number of ranks that sleep until `round` changes
  };

  std::byte* slot(int rank) const;
  bool begin_round();
  void post();
  bool wait_all(std::uint32_t round);
  void add_all(std::span<float> own) const;
  bool wait(int rank, std::uint32_t round);
  bool sleep(int rank, std::uint32_t round);

  SharedMemoryGroupOptions options_;
  Line* lines_;
  std::byte* slots_;
  std::uint32_t round_ = 0;
  int timeout_ms_ = 0;
  std::optional<Error> failure_;
};

}  // namespace octavo
