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
using testing::Not;

// A replica that computes `each` tokens between two readings. While `hidden` is set, a proxy answers in its
// place.
struct Replica {
  explicit Replica(int tokens_per_read) : each(tokens_per_read) {}
  const int each;
  std::atomic<bool> hidden = false;
  std::atomic<int> tokens = 0, hidden_reads = 0;
  std::unique_ptr<http::Server> server =
      http::Server::start({}, [this](std::shared_ptr<http::Exchange> exchange) {
        if (hidden && ++hidden_reads) return exchange->respond({.body = "<html>sign in</html>"});
        exchange->respond({.body = fmt::format("vllm:generation_tokens_total {}\n", tokens += each)});
      }).value();
};

PlannerOptions watching(const std::vector<std::string>& urls) {
  return {.urls = urls,
          .rules = {.scaling = {.replicas_min = 1, .replicas_max = 5, .window_us = 100'000}},
          .capacity = CapacityTable({{1, 100}}),
          .interval_ms = 20};
}

template <class Condition>
bool eventually(const Condition& condition) {
  for (int i = 0; i < 60'000 && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return condition();
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
  const Replica first(50'000), second(50'000);
  std::atomic<int> wanted = 0, ends = 0;
  const auto planner = Planner::start(watching({first.server->address(), second.server->address()}),
                                      std::make_unique<Remembering>(wanted, ends))
                           .value();
  EXPECT_TRUE(eventually([&] { return wanted == 5; })) << "far more tokens a second than any fleet serves";
  const auto page = call_server(planner->address(), "GET", "/metrics", {}, "").value();
  EXPECT_THAT(page.body, HasSubstr("\noctavo_plan_desired_replicas 5\n"));
  EXPECT_THAT(page.body, HasSubstr("\noctavo_plan_ready_replicas 2\n"));
  EXPECT_THAT(page.body, HasSubstr("\noctavo_plan_decisions_total{reason=\"load\"} "));
  planner->stop(60'000);
  EXPECT_EQ(ends, 3) << "it waits for what the connector has to end";
}

TEST(Planner, DecidesNothingUntilAReplicaAnswers) {
  Replica first(0), second(0);
  first.hidden = second.hidden = true;
  std::atomic<int> wanted = 0, ends = 0;
  const auto planner = Planner::start(watching({first.server->address(), second.server->address()}),
                                      std::make_unique<Remembering>(wanted, ends))
                           .value();
  EXPECT_TRUE(eventually([&] { return first.hidden_reads > 10; }));
  EXPECT_EQ(wanted, 0) << "one replica would be the minimum";
  const auto page = call_server(planner->address(), "GET", "/metrics", {}, "").value();
  EXPECT_THAT(page.body, Not(HasSubstr("octavo_plan_desired_replicas")));
  first.hidden = false;
  EXPECT_TRUE(eventually([&] { return wanted == 2; })) << "the silent replica exists, too";
  planner->stop(60'000);
}

}  // namespace
}  // namespace octavo::fleet
