#include "fleet/balance/flow_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "base/check.h"
#include "base/clock.h"

namespace octavo::fleet {
namespace {

class FlowGateTest : public testing::Test {
 protected:
  void begin(int endpoints, FlowGateOptions options) {
    auto made = Balancer::make(
        {.pools = {{.pipeline = {{{"", "active-request-scorer"}}, {{"active-request-scorer"}}}}}});
    CHECK(made);
    balancer_ = *std::move(made);
    set_endpoints(endpoints);
    gate_ = std::make_unique<FlowGate>(*balancer_, std::move(options));
  }
  void set_endpoints(int endpoints) {
    std::vector<Endpoint> all;
    for (int i = 1; i <= endpoints; ++i) all.push_back({.name = fmt::format("10.0.0.{}:8000", i)});
    balancer_->set_endpoints(std::move(all));
    std::vector<Scrape> scrapes;
    const auto view = balancer_->view();
    for (const Member& member : view->members) scrapes.push_back({.endpoint = member.id, .answered = true});
    balancer_->scraped(std::move(scrapes));
  }
  std::uint64_t enqueue(int priority = 0) {
    const std::uint64_t id = gate_->new_id();
    gate_->enqueue({.id = id, .priority = priority, .arrived_us = now_us()}, [this, id](FlowOutcome outcome) {
      const std::lock_guard lock(mutex_);
      outcomes_.emplace_back(id, outcome);
    });
    return id;
  }
  std::size_t outcomes() {
    const std::lock_guard lock(mutex_);
    return outcomes_.size();
  }
  template <class Condition>
  void wait(Condition condition) {
    for (int i = 0; i < 60'000 && !condition(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_TRUE(condition()) << "not within 60 seconds";
  }

  std::unique_ptr<Balancer> balancer_;
  std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, FlowOutcome>> outcomes_;
  std::unique_ptr<FlowGate> gate_;
};

using Outcomes = std::vector<std::pair<std::uint64_t, FlowOutcome>>;

TEST_F(FlowGateTest, WhoWaitsGoesWhenSomebodyEnds) {
  begin(1, {.detector = ConcurrencyDetector{.requests_max = 1}});
  Booking busy = balancer_->choose({}, {})->booking;
  const std::uint64_t low = enqueue(0), high = enqueue(1);
  EXPECT_EQ(outcomes(), 0U);
  EXPECT_NE(gate_->metrics().find("llm_d_epp_flow_control_queue_size{priority=\"1\"} 1\n"),
            std::string::npos);
  EXPECT_NE(gate_->metrics().find("llm_d_epp_flow_control_pool_saturation 1\n"), std::string::npos);
  EXPECT_NE(
      gate_->metrics("p").find("llm_d_epp_flow_control_queue_size{priority=\"1\",inference_pool=\"p\"} 1\n"),
      std::string::npos);
  balancer_->ended(busy, Outcome::success);
  wait([&] { return outcomes() == 2; });
  EXPECT_EQ(outcomes_, (Outcomes{{high, FlowOutcome::dispatched}, {low, FlowOutcome::dispatched}}));
  EXPECT_NE(gate_->metrics().find("octavo_pick_flow_control_outcomes_total{outcome=\"Dispatched\"} 2\n"),
            std::string::npos);
}

TEST_F(FlowGateTest, EverybodyIsToldSomething) {
  begin(1, {.flow = {.requests_max = 2}, .detector = ConcurrencyDetector{.requests_max = 1}});
  EXPECT_TRUE(balancer_->choose({}, {})) << "takes the only place";
  const std::uint64_t first = enqueue(), second = enqueue(), third = enqueue();
  EXPECT_EQ(outcomes_, (Outcomes{{third, FlowOutcome::rejected_capacity}}));
  gate_->cancel(first);
  gate_->cancel(first);
  gate_->stop();
  const std::uint64_t late = enqueue();
  EXPECT_EQ(outcomes_, (Outcomes{{third, FlowOutcome::rejected_capacity},
                                 {first, FlowOutcome::evicted_context_cancelled},
                                 {second, FlowOutcome::evicted_other},
                                 {late, FlowOutcome::evicted_other}}));
}

TEST_F(FlowGateTest, WithoutEndpointsTheyWaitForSome) {
  begin(0, {.detector = ConcurrencyDetector{}});
  const std::uint64_t waiting = enqueue();
  EXPECT_EQ(outcomes(), 0U);
  set_endpoints(1);
  wait([&] { return outcomes() == 1; });
  EXPECT_EQ(outcomes_, (Outcomes{{waiting, FlowOutcome::dispatched}}));
}

TEST_F(FlowGateTest, EndpointsWithoutMetricsAreReported) {
  constexpr std::string_view kStale =
      "llm_d_epp_flow_control_stale_endpoints{detector=\"utilization-detector\"} 2\n";
  begin(2, {.detector = UtilizationDetector{}});
  enqueue();
  EXPECT_EQ(outcomes(), 0U);
  EXPECT_NE(gate_->metrics().find(kStale), std::string::npos);
  gate_.reset();
  begin(2, {.detector = UtilizationDetector{.ignores_stale = true}});
  const std::uint64_t sent = enqueue();
  wait([&] { return outcomes() == 2; });
  EXPECT_EQ(outcomes_.back(), (std::pair{sent, FlowOutcome::dispatched})) << "nobody knows the load";
  EXPECT_NE(gate_->metrics().find(kStale), std::string::npos);
}

TEST_F(FlowGateTest, NobodyWaitsForeverWithoutEndpoints) {
  begin(0, {.flow = {.ttl_us = 3'600'000'000, .no_endpoint_ttl_us = 1000}});
  const std::uint64_t waiting = enqueue();
  wait([&] { return outcomes() == 1; });
  EXPECT_EQ(outcomes_, (Outcomes{{waiting, FlowOutcome::evicted_no_endpoints}}));
}

}  // namespace
}  // namespace octavo::fleet
