// Tests with a stand-in for NCCL (testing/nccl_stand_in.cc), whose values are in host memory.
#include "dist/nccl_group.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "dist/shared_memory.h"
#include "dist/shared_memory_group.h"
#include "dist/testing/process_group_checks.h"

namespace octavo {
namespace {

class HostDevice final : public NcclDevice {
 public:
  void* stream() override { return nullptr; }
  Result<std::byte*> scratch(std::size_t bytes) override {
    memory_.resize(std::max(memory_.size(), bytes));
    return memory_.data();
  }
  void add_parts(float* sum, const float* parts, std::size_t count, int ranks, int own) override {
    const auto part = [&](int rank, std::size_t i) {
      return rank == own ? sum[i] : parts[static_cast<std::size_t>(rank) * count + i];
    };
    for (std::size_t i = 0; i < count; ++i) {
      float total = part(0, i);
      for (int rank = 1; rank < ranks; ++rank) total += part(rank, i);
      sum[i] = total;
    }
  }

 private:
  std::vector<std::byte> memory_;
};

std::shared_ptr<const NcclLibrary> stand_in() {
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  return NcclLibrary::open(folder / "nccl_stand_in/libnccl.so.2").value();
}

// Runs `body` on each rank; ranks are threads. The host group reports that rank `lost_rank` is dead; -1: no
// rank.
void over_nccl(int size, const std::function<void(NcclGroup&)>& body, int lost_rank = -1) {
  const auto nccl = stand_in();
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(size)).value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      bool is_lost = false;
      const auto check = [&]() -> Result<> {
        if (is_lost) return failure(ErrorCode::unavailable, "they are gone");
        return {};
      };
      SharedMemoryGroup host(memory.bytes(), {.rank = rank, .size = size, .check = check, .spin = false});
      const auto group = NcclGroup::create(nccl, std::make_unique<HostDevice>(), host).value();
      is_lost = rank == lost_rank;
      body(*group);
    });
}

void fine(void (*check)(ProcessGroup&), int size) {
  over_nccl(size, [&](NcclGroup& group) {
    check(group);
    EXPECT_TRUE(group.status().has_value());
  });
}

TEST(NcclGroup, SumsAreAddedInTheOrderOfRanks) {
  for (const int size : {1, 2, 3, 4}) fine(group_checks::sums_are_added_in_the_order_of_ranks, size);
}

TEST(NcclGroup, ManyRoundsOfAllKindsDoNotMeet) { fine(group_checks::rounds_of_all_kinds_do_not_meet, 3); }

TEST(NcclGroup, MessagesMayBeLarge) { fine(group_checks::messages_may_be_large, 2); }

// The bytes of all rows are gathered as if each row was gathered alone.
void rows_are_gathered(ProcessGroup& group) {
  constexpr std::size_t kRows = 5, kBytes = 12;
  const std::size_t starts[] = {0, 7, 7, kBytes};
  std::vector<std::byte> rows(kRows * kBytes), expected;
  for (std::size_t i = 0; i < rows.size(); ++i) expected.push_back(static_cast<std::byte>(i));
  const auto own = static_cast<std::size_t>(group.rank());
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (i % kBytes >= starts[own] && i % kBytes < starts[own + 1]) rows[i] = expected[i];
  group.gather_rows(rows, kBytes, starts, 0);
  if (group.rank() == 0) {
    EXPECT_EQ(rows, expected);
  }
  group.barrier();
}

TEST(NcclGroup, RowsAreGathered) { fine(rows_are_gathered, 3); }

TEST(NcclGroup, PartsOfAllSizesAreGathered) {
  for (const int size : {1, 2, 4}) fine(group_checks::parts_of_all_sizes_are_gathered, size);
}

// Rank 1 ends; rank 0 waits for it and gets the error from NCCL.
TEST(NcclGroup, ARankThatIsGoneIsAFailure) {
  over_nccl(
      2,
      [](NcclGroup& group) {
        if (group.rank() == 1) {
          group.barrier();
          EXPECT_EQ(group.status().error().message, "they are gone");
          return;
        }
        std::vector<float> values(1000);
        group.all_reduce(values);
        ASSERT_FALSE(group.status());
        EXPECT_EQ(group.status().error().message,
                  "NCCL: a collective operation: remote process exited or there was a network error");
        group.all_reduce(values);
      },
      1);
}

// Runs create() on rank 0 of two ranks, and `rank_1` on the other one. `lost`: rank 0 knows that rank 1 is
// dead.
Error error_of_start(int timeout_ms, bool lost,
                     const std::function<void(ProcessGroup&, const NcclStart&)>& rank_1) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(2)).value();
  const NcclStart start{.name = 4, .timeout_ms = timeout_ms};
  const std::jthread other([&] {
    SharedMemoryGroup host(memory.bytes(), {.rank = 1, .size = 2, .spin = false});
    rank_1(host, start);
  });
  const auto check = [&]() -> Result<> {
    if (lost) return failure(ErrorCode::unavailable, "rank 5 is gone");
    return {};
  };
  SharedMemoryGroup host(memory.bytes(), {.rank = 0, .size = 2, .check = check, .spin = false});
  auto group = NcclGroup::create(stand_in(), std::make_unique<HostDevice>(), host, start);
  return group.error();
}

TEST(NcclGroup, ARankThatDiesBeforeItIsConnectedEndsTheStart) {
  const Error error = error_of_start(600'000, true, [](ProcessGroup&, const NcclStart&) {});
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_EQ(error.message, "rank 5 is gone");
}

TEST(NcclGroup, ARankThatHangsInNcclIsNamed) {
  setenv("NCCL_STAND_IN_HANGS", "1", 1);
  const Error error = error_of_start(200, false, [](ProcessGroup& host, NcclStart start) {
    start.name = 5;
    EXPECT_FALSE(NcclGroup::create(stand_in(), std::make_unique<HostDevice>(), host, start));
  });
  unsetenv("NCCL_STAND_IN_HANGS");
  EXPECT_EQ(error.code, ErrorCode::unavailable);
  EXPECT_EQ(
      error.message,
      "NCCL: ncclCommInitRank has not returned on rank 4, 5 for 200 ms: set NCCL_DEBUG=INFO to see why, or "
      "raise --distributed-timeout-seconds");
}

TEST(NcclLibrary, WhatIsNotThereIsSaid) {
  EXPECT_EQ(stand_in()->version(), "2.21.5");
  const auto none = NcclLibrary::open("libnccl_of_nobody.so.2");
  EXPECT_EQ(none.error().code, ErrorCode::unsupported);
  const auto other = NcclLibrary::open("libc.so.6");
  EXPECT_EQ(other.error().message, "libc.so.6 has no ncclRecv, because it is too old");
}

}  // namespace
}  // namespace octavo
