#include "base/rank_endpoint.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(RankEndpoint, EachRankHasItsOwn) {
  EXPECT_EQ(rank_endpoint("tcp://*:5557", 0), "tcp://*:5557");
  EXPECT_EQ(rank_endpoint("tcp://*:5557", 3), "tcp://*:5560");
  EXPECT_EQ(rank_endpoint("tcp://[::1]:5557", 1), "tcp://[::1]:5558");
  EXPECT_EQ(rank_endpoint("ipc:///tmp/kv", 1), "ipc:///tmp/kv_dp1");
  EXPECT_EQ(rank_endpoint("", 1), "");
}

}  // namespace
}  // namespace octavo
