#include "fleet/discover/kube_lease.h"

#include <gtest/gtest.h>

#include <boost/json/object.hpp>

namespace octavo::fleet {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

TEST(LeaseElection, TakesWhatNobodyHoldsAndRenewsIt) {
  LeaseElection one("one", "lease");
  EXPECT_FALSE(one.leads(0));
  const auto made = one.claim(nullptr, 0, "t0");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->at("metadata").at("name").as_string(), "lease");
  EXPECT_EQ(made->at("spec").at("holderIdentity").as_string(), "one");
  EXPECT_EQ(made->at("spec").at("leaseTransitions").as_int64(), 0);
  one.claimed(0);
  EXPECT_TRUE(one.leads(9 * kSecond));
  EXPECT_FALSE(one.leads(10 * kSecond)) << "given up before others take it";
  const auto renewed = one.claim(&*made, 2 * kSecond, "t2");
  ASSERT_TRUE(renewed);
  EXPECT_EQ(renewed->at("spec").at("renewTime").as_string(), "t2");
  EXPECT_EQ(renewed->at("spec").at("acquireTime").as_string(), "t0");
}

TEST(LeaseElection, AnothersIsTakenOnlyWhenItHasNotChangedForItsDuration) {
  LeaseElection one("one", "lease"), two("two", "lease");
  auto lease = *one.claim(nullptr, 0, "t0");
  EXPECT_FALSE(two.claim(&lease, 100 * kSecond, "t1")) << "however old it may be";
  EXPECT_FALSE(two.claim(&lease, 114 * kSecond, "t2"));
  lease = *one.claim(&lease, 0, "t3");
  EXPECT_FALSE(two.claim(&lease, 116 * kSecond, "t4")) << "it was renewed";
  const auto taken = two.claim(&lease, 131 * kSecond, "t5");
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->at("spec").at("holderIdentity").as_string(), "two");
  EXPECT_EQ(taken->at("spec").at("leaseTransitions").as_int64(), 1);
  two.claimed(131 * kSecond);
  two.lost();
  EXPECT_FALSE(two.leads(131 * kSecond));
}

}  // namespace
}  // namespace octavo::fleet
