#include "fleet/route/tenants.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/testing/scratch_directory.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kSecond = 1'000'000;

Result<std::vector<TenantOptions>> read(const std::string& text) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() / "tenants.yaml";
  std::ofstream(path) << text;
  return read_tenants_file(path);
}

TEST(Tenants, AreReadFromAFile) {
  const auto tenants = read(
      "tenants:\n- {name: a, keys: [k1, k2], requestsPerSecond: 2.5, maxConcurrentRequests: 8}\n"
      "- {name: b, keys: [k3], burst: 7}\n");
  ASSERT_TRUE(tenants) << tenants.error().message;
  EXPECT_EQ(tenants->at(0).keys, (std::vector<std::string>{"k1", "k2"}));
  EXPECT_EQ(tenants->at(0).burst, 3) << "a second's worth";
  EXPECT_EQ(tenants->at(0).concurrent_max, 8);
  EXPECT_EQ(tenants->at(1).requests_per_second, 0);
  EXPECT_EQ(tenants->at(1).burst, 7);
}

TEST(Tenants, MistakesNameTheField) {
  const auto field = [](const std::string& text) { return read(text).error().field; };
  EXPECT_EQ(field("[]"), "tenants");
  EXPECT_EQ(field("tenants: {}"), "tenants");
  EXPECT_EQ(field("tenants: [7]"), "tenants[0]");
  EXPECT_EQ(field("tenants: [{keys: [k]}]"), "tenants[0].name");
  EXPECT_EQ(field("tenants: [{name: a}]"), "tenants[0].keys");
  EXPECT_EQ(field("tenants: [{name: a, keys: []}]"), "tenants[0].keys");
  EXPECT_EQ(field("tenants: [{name: a, keys: [k, k]}]"), "tenants[0].keys");
  EXPECT_EQ(field("tenants: [{name: a, keys: [k]}, {name: a, keys: [l]}]"), "tenants[1].name");
  EXPECT_EQ(field("tenants: [{name: a, keys: [k], requestsPerSecond: 0}]"), "tenants[0].requestsPerSecond");
  EXPECT_EQ(field("tenants: [{name: a, keys: [k], rate: 1}]"), "tenants[0].rate");
}

TEST(Tenants, AreFoundByTheirKeys) {
  Tenants tenants({{.name = "a", .keys = {"k1", "k2"}}, {.name = "b", .keys = {"k3"}}});
  EXPECT_EQ(tenants.find("Bearer k2")->options().name, "a");
  EXPECT_EQ(tenants.find("bearer k3")->options().name, "b");
  for (const char* wrong : {"", "k1", "Bearer ", "Bearer k", "Basic k1"})
    EXPECT_EQ(tenants.find(wrong), nullptr) << wrong;
}

TEST(Tenant, LinesLeaveAQuarterToRequests) {
  Tenant concurrent({.name = "a", .concurrent_max = 4});
  std::vector<Tenant::Answer> running;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(concurrent.has_room_for_line(0));
    running.push_back(concurrent.admit(0, Tenant::Kind::line));
    EXPECT_EQ(running.back().retry_after_s, 0);
  }
  EXPECT_FALSE(concurrent.has_room_for_line(0));
  EXPECT_THAT(concurrent.admit(0, Tenant::Kind::line).message, HasSubstr("4 requests in flight"));
  running.push_back(concurrent.admit(0));
  EXPECT_EQ(running.back().retry_after_s, 0);
  running.clear();
  EXPECT_TRUE(concurrent.has_room_for_line(0)) << "ended lines are not counted";

  Tenant rated({.name = "b", .requests_per_second = 1, .burst = 4});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(rated.admit(kSecond, Tenant::Kind::line).retry_after_s, 0);
  EXPECT_FALSE(rated.has_room_for_line(kSecond));
  EXPECT_EQ(rated.admit(kSecond).retry_after_s, 0);
  EXPECT_TRUE(rated.has_room_for_line(3 * kSecond)) << "two more have come";

  Tenant single({.name = "c", .requests_per_second = 1, .concurrent_max = 1});
  EXPECT_TRUE(single.has_room_for_line(kSecond)) << "limits of 1 let lines run";
}

TEST(Tenant, HasARate) {
  Tenant tenant({.name = "a", .requests_per_second = 0.5, .burst = 2});
  EXPECT_EQ(tenant.admit(100 * kSecond).retry_after_s, 0);
  EXPECT_EQ(tenant.admit(100 * kSecond).retry_after_s, 0);
  EXPECT_EQ(tenant.admit(100 * kSecond).retry_after_s, 2);
  EXPECT_EQ(tenant.admit(101 * kSecond).retry_after_s, 1);
  EXPECT_EQ(tenant.admit(102 * kSecond).retry_after_s, 0);
  EXPECT_EQ(tenant.admit(1000 * kSecond).retry_after_s, 0);
  EXPECT_EQ(tenant.admit(1000 * kSecond).retry_after_s, 0) << "a burst, and no more than that, is saved up";
  EXPECT_GT(tenant.admit(1000 * kSecond).retry_after_s, 0);
}

TEST(Tenant, HasSoManyRequestsAtATime) {
  Tenants tenants({{.name = "a", .keys = {"k"}, .concurrent_max = 1}});
  Tenant& tenant = *tenants.find("Bearer k");
  {
    const auto first = tenant.admit(0);
    EXPECT_EQ(first.retry_after_s, 0);
    const auto second = tenant.admit(0);
    EXPECT_EQ(second.retry_after_s, 1);
    EXPECT_THAT(second.message, HasSubstr("at most 1"));
    EXPECT_THAT(tenants.metrics(), HasSubstr("octavo_route_tenant_requests_active{tenant=\"a\"} 1\n"));
  }
  EXPECT_EQ(tenant.admit(0).retry_after_s, 0);
  EXPECT_THAT(tenants.metrics(),
              HasSubstr("octavo_route_tenant_requests_total{tenant=\"a\",outcome=\"admitted\"} 2\n"));
  EXPECT_THAT(
      tenants.metrics(),
      HasSubstr("octavo_route_tenant_requests_total{tenant=\"a\",outcome=\"concurrency_limited\"} 1\n"));
  EXPECT_THAT(tenants.metrics(), HasSubstr("octavo_route_tenant_requests_active{tenant=\"a\"} 0\n"));
}

}  // namespace
}  // namespace octavo::fleet
