#include "dist/shared_memory_group.h"

#include <gtest/gtest.h>

#include "dist/shared_memory.h"

namespace octavo {
namespace {

TEST(SharedMemoryGroup, ARankThatDoesNotAnswerIsAnError) {
  const SharedMemory memory = SharedMemory::create(SharedMemoryGroup::memory_bytes(2)).value();
  SharedMemoryGroup group(memory.bytes(), {.rank = 0, .size = 2});
  group.set_timeout_ms(100);
  std::vector<float> values(4, 1);
  group.all_reduce(values);
  ASSERT_TRUE(group.failure());
  EXPECT_EQ(group.failure()->message, "rank 1 has not answered for 100 ms");
  group.barrier();
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
