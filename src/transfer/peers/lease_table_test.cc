#include "transfer/peers/lease_table.h"

#include <gtest/gtest.h>

#include <limits>

namespace octavo {
namespace {

constexpr std::int64_t kSecond = 1'000'000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
using Owners = std::vector<std::uint64_t>;

TEST(LeaseTable, LeasesEndWithTheirTime) {
  LeaseTable table(30);
  EXPECT_EQ(table.next_end_us(), kNever);
  table.add("a", {.owner = 1}, 0);
  table.add("b", {.owner = 2}, 10 * kSecond);
  EXPECT_EQ(table.next_end_us(), 30 * kSecond);
  EXPECT_EQ(table.take_ended(30 * kSecond - 1), Owners{});
  EXPECT_EQ(table.take_ended(30 * kSecond), Owners{1});
  EXPECT_FALSE(table.use("a", 30 * kSecond, [](const Lease&) { FAIL(); }));
  EXPECT_EQ(table.take_ended(40 * kSecond), Owners{2});
  EXPECT_EQ(table.expired(), 2);
  EXPECT_EQ(table.next_end_us(), kNever);
}

TEST(LeaseTable, ReadingBeginsTheTimeAnew) {
  LeaseTable table(30);
  table.add("a", {.blocks = {{.number = 7}}, .owner = 1}, 0);
  KvLocation read;
  EXPECT_TRUE(table.use("a", 20 * kSecond, [&](const Lease& lease) { read = lease.blocks[0]; }));
  EXPECT_EQ(read.number, 7);
  EXPECT_EQ(table.take_ended(49 * kSecond), Owners{});
  EXPECT_EQ(table.take_ended(50 * kSecond), Owners{1});
}

TEST(LeaseTable, WhatIsOverCannotBeRenewed) {
  LeaseTable table(30);
  table.add("a", {.owner = 1}, 0);
  EXPECT_FALSE(table.use("a", 31 * kSecond, [](const Lease&) { FAIL(); }));
  EXPECT_EQ(table.take_ended(31 * kSecond), Owners{1});
}

TEST(LeaseTable, OneThatIsFetchedHasNotExpired) {
  LeaseTable table(30);
  table.add("a", {.owner = 1}, 0);
  table.finish("a");
  table.finish("nobody's");
  EXPECT_EQ(table.next_end_us(), 0);
  EXPECT_FALSE(table.use("a", 1, [](const Lease&) { FAIL(); }));
  EXPECT_EQ(table.take_ended(1), Owners{1});
  EXPECT_EQ(table.expired(), 0);
}

TEST(LeaseTable, TheOneThatWouldEndFirstGivesWayUnlessItIsRead) {
  LeaseTable table(30);
  EXPECT_EQ(table.end_first(), std::nullopt);
  table.add("a", {.owner = 1}, 0);
  table.add("b", {.owner = 2}, 1);
  table.add("c", {.owner = 3}, 2);
  table.use("a", 3, [&](const Lease&) {
    EXPECT_EQ(table.end_first(), 2u);
    EXPECT_EQ(table.end_first(), 3u);
    EXPECT_EQ(table.end_first(), std::nullopt);
  });
  EXPECT_EQ(table.end_first(), 1u);
  EXPECT_EQ(table.expired(), 3);
}

}  // namespace
}  // namespace octavo
