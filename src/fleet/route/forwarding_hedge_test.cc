// Tests of requests that go to a second worker when the first one is slow.
#include <future>

#include "fleet/route/test_router.h"

namespace octavo::fleet {
namespace {

TEST_F(RouterTest, WhoDoesNotBeginIsOutrunByAnother) {
  Keeper keeper;
  Replica stuck("stuck", std::ref(keeper)), b("b");
  route({stuck.url(), b.url()}, {.retry = {.hedge_after_ms = 1}, .health = {.breaker = {.enabled = false}}});
  for (int i = 0; i < 6; ++i) EXPECT_EQ(post("{}").body.substr(0, 1), "b");
  EXPECT_GE(stuck.requests, 1);
  wait([&] { return keeper.closed == stuck.requests; });  // the router has canceled the slower attempt
  const std::string metrics = get("/metrics").body;
  EXPECT_NE(metrics.find("octavo_route_hedges_total{outcome=\"won\"}"), std::string::npos);
  EXPECT_EQ(metrics.find("smg_worker_errors_total{"), std::string::npos);
  wait([&] { return get("/workers").body.find(R"("load":1)") == std::string::npos; });
}

TEST_F(RouterTest, WhereTheFirstOneFailsTheHedgeGoesOn) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b", std::ref(keeper));
  route({a.url(), b.url()}, {.retry = {.hedge_after_ms = 1}});
  auto answer = std::async(std::launch::async, [&] { return post("{}"); });
  wait([&] { return keeper.size() == 2; });
  keeper.at(0)->respond({.status = 500});
  wait([&] { return get("/metrics").body.find("smg_worker_errors_total{") != std::string::npos; });
  keeper.at(1)->respond({.body = "late"});
  EXPECT_EQ(answer.get().body, "late");
  EXPECT_NE(get("/metrics").body.find("smg_worker_retries_total 0\n"), std::string::npos);
  EXPECT_EQ(keeper.size(), 2U);
}

TEST_F(RouterTest, AHedgeThatFailsChangesNothing) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b", std::ref(keeper));
  route({a.url(), b.url()}, {.retry = {.hedge_after_ms = 1}});
  auto answer = std::async(std::launch::async, [&] { return post(R"({"timeout": 600})"); });
  wait([&] { return keeper.size() == 2; });
  // Only the hedge has this header. It may arrive before the first attempt.
  const std::size_t hedge = keeper.at(0)->request().headers.find("X-Request-Timeout") ? 0 : 1;
  keeper.at(hedge)->respond({.status = 500});
  wait([&] { return get("/metrics").body.find("octavo_route_hedges_total{") != std::string::npos; });
  keeper.at(1 - hedge)->respond({.body = "first"});
  EXPECT_EQ(answer.get().body, "first");
}

TEST_F(RouterTest, AHedgeOutlivesTheLastAttempt) {
  Keeper keeper;
  Replica a("a", std::ref(keeper)), b("b", std::ref(keeper));
  route({a.url(), b.url()}, {.retry = {.attempts_max = 1, .hedge_after_ms = 1}});
  auto answer = std::async(std::launch::async, [&] { return post("{}"); });
  wait([&] { return keeper.size() == 2; });
  keeper.at(0)->respond({.status = 503, .headers = {{"Retry-After", "1"}}});
  wait([&] { return get("/workers").body.find("\"load\":0") != std::string::npos; });
  keeper.at(1)->respond({.body = "late"});
  EXPECT_EQ(answer.get().body, "late");
}

}  // namespace
}  // namespace octavo::fleet
