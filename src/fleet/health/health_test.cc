#include <gtest/gtest.h>

#include "fleet/health/slow_start.h"

#include "fleet/health/circuit_breaker.h"
#include "fleet/health/endpoint_health.h"

namespace octavo::fleet {
namespace {

using State = CircuitBreaker::State;

constexpr BreakerOptions kBreaker{
    .failure_threshold = 3, .success_threshold = 2, .timeout_us = 100, .window_us = 1000};

void fail(CircuitBreaker& breaker, int times, std::int64_t now_us) {
  for (int i = 0; i < times; ++i) breaker.record(false, now_us);
}

TEST(CircuitBreaker, OpensAfterFailuresInARow) {
  CircuitBreaker breaker(kBreaker);
  fail(breaker, 2, 0);
  breaker.record(true, 0);
  fail(breaker, 2, 0);
  EXPECT_EQ(breaker.state(0), State::closed);
  fail(breaker, 1, 0);
  EXPECT_EQ(breaker.state(0), State::open);
  EXPECT_EQ(breaker.state(99), State::open);
  EXPECT_EQ(breaker.state(100), State::half_open);
}

TEST(CircuitBreaker, HalfOpenClosesOnSuccessesAndOpensOnOneFailure) {
  CircuitBreaker breaker(kBreaker);
  fail(breaker, 3, 0);
  breaker.record(true, 50);
  EXPECT_EQ(breaker.state(50), State::open) << "sent before it opened";
  breaker.record(true, 100);
  EXPECT_EQ(breaker.state(100), State::half_open);
  breaker.record(false, 110);
  EXPECT_EQ(breaker.state(110), State::open);
  breaker.record(true, 210);
  breaker.record(true, 211);
  EXPECT_EQ(breaker.state(211), State::closed);
  fail(breaker, 2, 212);
  EXPECT_EQ(breaker.state(212), State::closed) << "counts anew";
}

TEST(CircuitBreaker, FailuresLongAgoDoNotCount) {
  CircuitBreaker breaker(kBreaker);
  fail(breaker, 2, 0);
  fail(breaker, 2, 1001);
  EXPECT_EQ(breaker.state(1001), State::closed);
  fail(breaker, 1, 1002);
  EXPECT_EQ(breaker.state(1002), State::open);
}

TEST(CircuitBreaker, CanBeOff) {
  BreakerOptions off = kBreaker;
  off.enabled = false;
  CircuitBreaker breaker(off);
  fail(breaker, 100, 0);
  EXPECT_EQ(breaker.state(0), State::closed);
}

TEST(EndpointHealth, WithoutProbesItIsTakenForHealthy) {
  EXPECT_EQ(EndpointHealth({.needed = false}, kBreaker).availability(0), Availability::available);
  EXPECT_EQ(EndpointHealth({}, kBreaker).availability(0), Availability::unprobed);
}

TEST(EndpointHealth, ProbesDecideAfterSeveralInARow) {
  EndpointHealth health({.failure_threshold = 3, .success_threshold = 2}, kBreaker);
  EXPECT_EQ(health.availability(0), Availability::unprobed);
  health.probed(false);
  EXPECT_EQ(health.availability(0), Availability::starting);
  health.probed(true);
  EXPECT_EQ(health.availability(0), Availability::available);
  health.probed(false);
  health.probed(false);
  health.probed(true);
  health.probed(false);
  health.probed(false);
  EXPECT_EQ(health.availability(0), Availability::available);
  health.probed(false);
  EXPECT_EQ(health.availability(0), Availability::unhealthy);
  health.probed(true);
  EXPECT_EQ(health.availability(0), Availability::unhealthy);
  health.probed(true);
  EXPECT_EQ(health.availability(0), Availability::available);
}

TEST(EndpointHealth, FailuresBeforeTheFirstProbeDoNotCount) {
  EndpointHealth health({}, kBreaker);
  for (int i = 0; i < 3; ++i) health.answered(false, 0);
  EXPECT_EQ(health.availability(0), Availability::unprobed);
  health.probed(true);
  EXPECT_EQ(health.availability(0), Availability::available);
}

TEST(EndpointHealth, AnOpenBreakerAndDrainingKeepRequestsAway) {
  EndpointHealth health({}, kBreaker);
  health.probed(true);
  for (int i = 0; i < 3; ++i) health.answered(false, 0);
  EXPECT_EQ(health.availability(0), Availability::broken);
  EXPECT_EQ(health.availability(100), Availability::available) << "half open: tried again";
  health.drain();
  EXPECT_EQ(health.availability(100), Availability::draining);
}

TEST(SlowStart, WhoComesGetsItsShareByAndBy) {
  EXPECT_EQ(slow_start_share(1000, 900, 0, 200), .5);
  EXPECT_EQ(slow_start_share(900, 900, 0, 200), 0);
  EXPECT_EQ(slow_start_share(1100, 900, 0, 200), 1);
  EXPECT_EQ(slow_start_share(5000, 900, 0, 200), 1);
  // The oldest endpoint has the age 100, so the ramp is 100 long instead of 1000.
  EXPECT_EQ(slow_start_share(100, 50, 0, 1000), .5);
  EXPECT_EQ(slow_start_share(100, 0, 0, 1000), 1);
  EXPECT_EQ(slow_start_share(0, 0, 0, 1000), 1);
}

}  // namespace
}  // namespace octavo::fleet
