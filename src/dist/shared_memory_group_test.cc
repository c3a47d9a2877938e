#include "dist/shared_memory_group.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "base/random.h"
#include "dist/shared_memory.h"

namespace octavo {
namespace {

// Runs `body` on each rank, a thread in place of a process.
template <class Body>
void on_ranks(int size, const Body& body) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(size)).value();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      SharedMemoryGroup group(memory.bytes(), {.rank = rank, .size = size, .check = {}, .spin = false});
      body(group);
      EXPECT_TRUE(group.status().has_value());
    });
}

float number(int rank, std::size_t i) {
  return static_cast<float>(random_bits(static_cast<std::uint64_t>(rank), i) % 2'000'001) * 1e-3F - 1000;
}

TEST(SharedMemoryGroup, SumsAreAddedInTheOrderOfRanks) {
  for (const int size : {1, 2, 4}) {
    const std::size_t most = SharedMemoryGroup::kSlotBytes / sizeof(float);
    on_ranks(size, [&](ProcessGroup& group) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, most, 2 * most + 17}) {
        std::vector<float> values(count), expected(count);
        for (std::size_t i = 0; i < count; ++i) {
          values[i] = number(group.rank(), i);
          expected[i] = number(0, i);
          for (int rank = 1; rank < size; ++rank) expected[i] += number(rank, i);
        }
        group.all_reduce(values);
        EXPECT_EQ(values, expected);
      }
    });
  }
}

TEST(SharedMemoryGroup, ManyRoundsOfAllKindsDoNotMeet) {
  constexpr int kSize = 3, kRounds = 3000;
  on_ranks(kSize, [&](ProcessGroup& group) {
    std::vector<std::byte> message;
    for (int i = 0; i < kRounds; ++i) {
      std::vector<float> sum(5, static_cast<float>(i + group.rank()));
      group.all_reduce(sum);
      ASSERT_EQ(sum[4], static_cast<float>(3 * i + 3));

      if (group.rank() == 0) message.assign(static_cast<std::size_t>(i % 7), static_cast<std::byte>(i));
      group.broadcast(message);
      ASSERT_EQ(message, std::vector(static_cast<std::size_t>(i % 7), static_cast<std::byte>(i)));

      const std::byte mine[] = {static_cast<std::byte>(group.rank()), static_cast<std::byte>(i)};
      std::vector<std::byte> all(group.rank() == 2 ? 0 : 2 * kSize);
      group.all_gather(mine, all);
      for (std::size_t rank = 0; rank < all.size() / 2; ++rank) {
        ASSERT_EQ(all[2 * rank], static_cast<std::byte>(rank));
        ASSERT_EQ(all[2 * rank + 1], static_cast<std::byte>(i));
      }
    }
    group.barrier();
  });
}

TEST(SharedMemoryGroup, MessagesMayBeLargerThanASlot) {
  on_ranks(2, [](ProcessGroup& group) {
    for (const std::size_t bytes : {SharedMemoryGroup::kSlotBytes - 8, SharedMemoryGroup::kSlotBytes - 7,
                                    3 * SharedMemoryGroup::kSlotBytes + 1}) {
      std::vector<std::byte> expected(bytes), message;
      for (std::size_t i = 0; i < bytes; ++i) expected[i] = static_cast<std::byte>(i * 2654435761U >> 13);
      if (group.rank() == 0) message = expected;
      group.broadcast(message);
      EXPECT_TRUE(message == expected);

      std::vector<std::byte> all(2 * bytes);
      group.all_gather(expected, all);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), all.begin()));
      EXPECT_TRUE(
          std::equal(expected.begin(), expected.end(), all.begin() + static_cast<std::ptrdiff_t>(bytes)));
    }
  });
}

TEST(SharedMemoryGroup, ARankThatDoesNotAnswerIsAnError) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(2)).value();
  SharedMemoryGroup group(memory.bytes(), {.rank = 0, .size = 2});
  group.set_timeout_ms(100);
  std::vector<float> values(4, 1);
  group.all_reduce(values);
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->message, "rank 1 has not answered for 100 ms");
  group.barrier();  // returns
}

TEST(SharedMemoryGroup, ARankThatIsGoneIsAnError) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(2)).value();
  int checks = 0;
  const auto check = [&]() -> Result<> {
    if (++checks < 3) return {};
    return failure(ErrorCode::unavailable, "rank 1 is gone");
  };
  SharedMemoryGroup group(memory.bytes(), {.rank = 0, .size = 2, .check = check});
  group.barrier();
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->message, "rank 1 is gone");
}

TEST(SharedMemory, ADescriptorThatIsNoneIsAnError) { EXPECT_FALSE(SharedMemory::open(-1)); }

}  // namespace
}  // namespace octavo
