#include "fleet/autoscale/planner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "fleet/autoscale/connector.h"
#include "fleet/observe/server_pages.h"

namespace octavo::fleet {
namespace {

using testing::HasSubstr;

// A replica that computes `each` tokens between two readings.
std::unique_ptr<http::Server> replica(int each) {
  return http::Server::start(
             {},
             [each,
              tokens = std::make_shared<std::atomic<int>>(0)](std::shared_ptr<http::Exchange> exchange) {
               exchange->respond({.body = fmt::format("vllm:generation_tokens_total {}\n", *tokens += each)});
             })
      .value();
}

class Remembering final : public Connector {
 public:
  Remembering(std::atomic<int>& wanted, std::atomic<int>& ends) : wanted_(wanted), ends_(ends) {}
  void tick(int replicas, std::int64_t) override { wanted_ = replicas; }
  bool end(std::int64_t) override { return ++ends_ == 3; }

 private:
  std::atomic<int>&wanted_, &ends_;
};

TEST(Planner, ReadsDecidesAndTells) {
  const auto first = replica(50'000), second = replica(50'000);
  std::atomic<int> wanted = 0, ends = 0, existing = 0;
  PlannerOptions options{.urls = {first->address(), second->address()},
                         .rules = {.scaling = {.replicas_min = 1, .replicas_max = 5, .window_us = 100'000}},
                         .capacity = CapacityTable({{1, 100}}),
                         .interval_ms = 20};
  const auto planner = Planner::start(std::move(options), [&](int replicas) {
                         existing = replicas;
                         return std::make_unique<Remembering>(wanted, ends);
                       }).value();
  EXPECT_EQ(existing, 2);
  for (int i = 0; i < 60'000 && wanted != 5; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(wanted, 5) << "far more tokens a second than any fleet serves";
  const auto page = call_server(planner->address(), "GET", "/metrics", {}, "").value();
  EXPECT_THAT(page.body, HasSubstr("\noctavo_plan_desired_replicas 5\n"));
  EXPECT_THAT(page.body, HasSubstr("\noctavo_plan_ready_replicas 2\n"));
  EXPECT_THAT(page.body, HasSubstr("\noctavo_plan_decisions_total{reason=\"load\"} "));
  planner->stop(60'000);
  EXPECT_EQ(ends, 3) << "it waits for what the connector has to end";
}

}  // namespace
}  // namespace octavo::fleet
