// Tests of a process group over any transport; each of 1 to 4 ranks calls them.
#pragma once

#include <gtest/gtest.h>

#include "base/random.h"
#include "dist/process_group.h"

namespace octavo::group_checks {

inline float number(int rank, std::size_t i) {
  return static_cast<float>(random_bits(static_cast<std::uint64_t>(rank), i) % 2'000'001) * 1e-3F - 1000;
}

inline void sums_are_added_in_the_order_of_ranks(ProcessGroup& group) {
  for (const std::size_t count : {1, 1000, 20'003, 262'144, 524'305}) {
    std::vector<float> values(count), expected(count);
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = number(group.rank(), i);
      expected[i] = number(0, i);
      for (int rank = 1; rank < group.size(); ++rank) expected[i] += number(rank, i);
    }
    group.all_reduce(values);
    EXPECT_EQ(values, expected);
  }
}

inline void rounds_of_all_kinds_do_not_meet(ProcessGroup& group) {
  const int size = group.size();
  std::vector<std::byte> message;
  for (int i = 0; i < 1000; ++i) {
    std::vector<float> sum(5, static_cast<float>(i + group.rank()));
    group.all_reduce(sum);
    ASSERT_EQ(sum[4], static_cast<float>(size * i + size * (size - 1) / 2));

    const std::vector expected(static_cast<std::size_t>(i % 7), static_cast<std::byte>(i));
    if (group.rank() == 0) message = expected;
    group.broadcast(message);
    ASSERT_EQ(message, expected);
    std::vector<std::byte> same(expected.size());
    if (group.rank() == 0) same = expected;
    group.broadcast(std::span(same));
    ASSERT_EQ(same, expected);

    const std::byte mine[] = {static_cast<std::byte>(group.rank()), static_cast<std::byte>(i)};
    std::vector<std::byte> all(group.rank() == 2 ? 0 : 2 * static_cast<std::size_t>(size));
    group.all_gather(mine, all);
    for (std::size_t rank = 0; rank < all.size() / 2; ++rank) {
      ASSERT_EQ(all[2 * rank], static_cast<std::byte>(rank));
      ASSERT_EQ(all[2 * rank + 1], static_cast<std::byte>(i));
    }
  }
  group.barrier();
}

inline void parts_of_all_sizes_are_gathered(ProcessGroup& group) {
  const auto size = static_cast<std::size_t>(group.size());
  for (std::size_t round = 0; round < 24; ++round) {
    std::vector<std::size_t> starts{round % 3};
    for (std::size_t rank = 0; rank < size; ++rank)
      starts.push_back(starts.back() + random_bits(round, rank) % 4 * (round % 8 == 0 ? 700'001 : 37));
    std::vector<std::byte> expected(starts.back() + 5);
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<std::byte>(random_bits(round, i));
    const auto own = static_cast<std::size_t>(group.rank());
    std::vector<std::byte> all(expected.size());
    std::copy(expected.begin() + static_cast<std::ptrdiff_t>(starts[own]),
              expected.begin() + static_cast<std::ptrdiff_t>(starts[own + 1]),
              all.begin() + static_cast<std::ptrdiff_t>(starts[own]));
    const int to = static_cast<int>(round % (size + 1)) - 1;
    group.gather(all, starts, to);
    if (to != ProcessGroup::kEveryRank && to != group.rank()) continue;
    EXPECT_TRUE(std::equal(expected.begin() + static_cast<std::ptrdiff_t>(starts.front()),
                           expected.begin() + static_cast<std::ptrdiff_t>(starts.back()),
                           all.begin() + static_cast<std::ptrdiff_t>(starts.front())))
        << "round " << round;
  }
  group.barrier();
}

inline void messages_may_be_large(ProcessGroup& group) {
  for (const std::size_t bytes : {(1 << 20) - 8, (1 << 20) - 7, 3 * (1 << 20) + 1}) {
    std::vector<std::byte> expected(bytes), message;
    for (std::size_t i = 0; i < bytes; ++i) expected[i] = static_cast<std::byte>(i * 2654435761U >> 13);
    if (group.rank() == 0) message = expected;
    group.broadcast(message);
    EXPECT_TRUE(message == expected);

    std::vector<std::byte> known(bytes);
    if (group.rank() == 0) known = expected;
    group.broadcast(std::span(known));
    EXPECT_TRUE(known == expected);

    std::vector<std::byte> all(static_cast<std::size_t>(group.size()) * bytes);
    group.all_gather(expected, all);
    for (std::size_t rank = 0; rank < static_cast<std::size_t>(group.size()); ++rank)
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(),
                             all.begin() + static_cast<std::ptrdiff_t>(rank * bytes)));
  }
}

}  // namespace octavo::group_checks
