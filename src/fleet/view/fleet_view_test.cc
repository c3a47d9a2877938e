#include "fleet/view/fleet_view.h"

#include <gtest/gtest.h>

#include "fleet/view/route_request.h"

namespace octavo::fleet {
namespace {

Endpoint named(std::string name) { return {.name = name, .url = "http://" + name}; }

TEST(Fleet, AViewStaysAsItWas) {
  Fleet fleet;
  const EndpointId a = *fleet.add(named("a:1"));
  const auto before = fleet.view();
  fleet.update(a, [](EndpointState& state) { state.waiting = 7; });
  ASSERT_TRUE(fleet.add(named("b:1")));
  EXPECT_EQ(before->members.size(), 1U);
  EXPECT_EQ(before->find(a)->state.waiting, 0);
  EXPECT_EQ(fleet.view()->find("a:1")->state.waiting, 7);
  EXPECT_GT(fleet.view()->epoch, before->epoch);
}

TEST(Fleet, ANameIsThereOnce) {
  Fleet fleet;
  ASSERT_TRUE(fleet.add(named("a:1")));
  EXPECT_EQ(fleet.add(named("a:1")).error().field, "url");
}

TEST(Fleet, AnIdIsTakenUntilItIsReleased) {
  Fleet fleet;
  const EndpointId a = *fleet.add(named("a:1"));
  const EndpointId b = *fleet.add(named("b:1"));
  EXPECT_TRUE(fleet.remove(a));
  EXPECT_FALSE(fleet.remove(a));
  EXPECT_EQ(fleet.view()->find(a), nullptr);
  const EndpointId c = *fleet.add(named("c:1"));
  EXPECT_NE(c, a);
  fleet.release(a);
  EXPECT_EQ(*fleet.add(named("a:1")), a);
  EXPECT_EQ(fleet.view()->members[1].id, b);
  EXPECT_EQ(fleet.view()->id_limit, 3U);
}

TEST(Fleet, HasALimit) {
  Fleet fleet;
  for (std::size_t i = 0; i < kEndpointsMax; ++i) ASSERT_TRUE(fleet.add(named(std::to_string(i))));
  EXPECT_EQ(fleet.add(named("x")).error().code, ErrorCode::resource_exhausted);
}

TEST(Fleet, NothingIsPublishedWhenNothingChanged) {
  Fleet fleet;
  ASSERT_TRUE(fleet.add(named("a:1")));
  const auto before = fleet.view();
  fleet.update([](Member&) { return false; });
  EXPECT_EQ(fleet.view(), before);
}

TEST(RouteRequest, TextHasANumberForEveryFourBytes) {
  EXPECT_EQ(estimated_tokens(""), std::vector<std::uint32_t>{});
  EXPECT_EQ(estimated_tokens("abcde"), (std::vector<std::uint32_t>{0x64636261, 0x65}));
}

}  // namespace
}  // namespace octavo::fleet
