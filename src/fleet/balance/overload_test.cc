// Simulates the router's queue in virtual time, with endpoints that refuse requests above their capacity.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <queue>

#include "fleet/balance/balancer.h"
#include "fleet/decide/policies.h"
#include "fleet/flow/flow_control.h"

namespace octavo::fleet {
namespace {

constexpr int kEndpoints = 2, kCapacity = 2;
constexpr std::int64_t kAnswerUs = 100'000, kTickUs = 1'000;

// Clients send one request every `interval_us`. Each endpoint accepts kCapacity concurrent requests.
class Overload {
 public:
  Overload(std::uint64_t queue_size, std::int64_t interval_us, int requests)
      : interval_us_(interval_us), requests_(requests) {
    flow_.emplace(FlowOptions{.requests_max = queue_size, .default_band = {.requests_max = queue_size}});
    balancer_ = *Balancer::make({.pools = {{.pipeline = find_policy("least_loaded")->pipeline({})}},
                                 .learn_capacity = true,
                                 .clock = [this] { return now_us_; },
                                 .availability_changed = [](const Endpoint&, Availability) {}});
    for (int i = 0; i < kEndpoints; ++i) {
      const std::string name = fmt::format("{}:80", i);
      const EndpointId id = balancer_->add({.name = name, .url = "http://" + name}).value();
      balancer_->probed(id, *balancer_->view()->find(id)->endpoint, true);
    }
  }

  void run() {
    for (; answered.size() + static_cast<std::size_t>(rejected) < static_cast<std::size_t>(requests_);
         now_us_ += kTickUs) {
      while (!running_.empty() && running_.begin()->first <= now_us_)
        end(running_.extract(running_.begin()).mapped());
      for (; sent_ < requests_ && sent_ * interval_us_ <= now_us_; ++sent_)
        wait(static_cast<std::uint64_t>(sent_));
      while (const auto next = flow_->next(balancer_->room() > 0 ? 0 : 1, now_us_)) send(next->id);
      ASSERT_LT(now_us_, 600'000'000) << "requests never end";
    }
  }

  std::vector<std::uint64_t> answered = {};
  int rejected = 0, refusals = 0;
  std::int64_t duration_us() const { return now_us_; }

 private:
  struct Running {
    std::uint64_t id;
    Booking booking;
  };

  void wait(std::uint64_t id) {
    const auto arrived_us = static_cast<std::int64_t>(id) * interval_us_;
    if (flow_->enqueue({.id = id, .arrived_us = arrived_us}, false)) ++rejected;
  }
  void send(std::uint64_t id) {
    Booking booking = balancer_->choose({}, {})->booking;
    if (++at_[booking.endpoint] <= kCapacity)
      return void(running_.emplace(now_us_ + kAnswerUs, Running{id, booking}));
    --at_[booking.endpoint];
    ++refusals;
    balancer_->refused(booking, 1);
    balancer_->ended(booking, Outcome::neither);
    wait(id);
  }
  void end(Running running) {
    --at_[running.booking.endpoint];
    balancer_->ended(running.booking, Outcome::success);
    answered.push_back(running.id);
  }

  std::int64_t now_us_ = 0;
  const std::int64_t interval_us_;
  const int requests_;
  int sent_ = 0;
  std::optional<FlowControl> flow_;
  std::unique_ptr<Balancer> balancer_;
  std::map<EndpointId, int> at_;
  std::multimap<std::int64_t, Running> running_;
};

TEST(Overload, RequestsOfOneMomentAreAnsweredInOrder) {
  Overload overload(100, 1, 40);
  overload.run();
  EXPECT_EQ(overload.rejected, 0);
  EXPECT_TRUE(std::ranges::is_sorted(overload.answered));
  EXPECT_LT(overload.refusals, 40) << "one for each request that came before the places were known";
  EXPECT_LE(overload.duration_us(), 40 / (kEndpoints * kCapacity) * kAnswerUs * 12 / 10);
}

TEST(Overload, GoodputStays) {
  constexpr std::int64_t kCapacityUs = kAnswerUs / (kEndpoints * kCapacity);  // mean time between two answers
  // Requests arrive at 20 times the rate that the endpoints can serve.
  Overload overload(20, kCapacityUs / 20, 16'000);
  overload.run();
  const double goodput = static_cast<double>(overload.answered.size()) * kCapacityUs /
                         static_cast<double>(overload.duration_us());
  EXPECT_GT(goodput, 0.95);
  EXPECT_LT(overload.refusals, 16'000 / 20) << "endpoints rarely see what they cannot take";
}

}  // namespace
}  // namespace octavo::fleet
