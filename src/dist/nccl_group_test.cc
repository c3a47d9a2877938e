// Tests with a fake NCCL library (testing/nccl_fake.cc), whose values are in host memory.
#include "dist/nccl_group.h"

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
  void add_parts(float* sum, const float* parts, std::size_t count, int parts_count) override {
    for (std::size_t i = 0; i < count; ++i) {
      sum[i] = parts[i];
      for (int part = 1; part < parts_count; ++part)
        sum[i] += parts[static_cast<std::size_t>(part) * count + i];
    }
  }

 private:
  std::vector<std::byte> memory_;
};

std::shared_ptr<const NcclLibrary> fake() {
  return NcclLibrary::open(std::filesystem::read_symlink("/proc/self/exe").parent_path() / "libnccl_fake.so")
      .value();
}

// Runs `body` on each rank; ranks are threads. The host group reports that rank `lost_rank` is dead; -1: no
// rank.
void over_nccl(int size, const std::function<void(NcclGroup&)>& body, int lost_rank = -1) {
  const auto nccl = fake();
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
      HostDevice device;
      const auto group = NcclGroup::create(nccl, device, host).value();
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

TEST(NcclLibrary, WhatIsNotThereIsSaid) {
  EXPECT_EQ(fake()->version(), "2.21.5");
  const auto none = NcclLibrary::open("libnccl_of_nobody.so.2");
  EXPECT_EQ(none.error().code, ErrorCode::unsupported);
  const auto other = NcclLibrary::open("libc.so.6");
  EXPECT_EQ(other.error().message, "libc.so.6 has no ncclRecv, because it is too old");
}

}  // namespace
}  // namespace octavo
