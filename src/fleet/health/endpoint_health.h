// Decides whether an endpoint gets requests, from its probes, its circuit breaker and whether it is
// draining.
#pragma once

#include <algorithm>
#include <cstdint>

#include "fleet/health/circuit_breaker.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct ProbeOptions {
  int failure_threshold = 3;  // consecutive failed probes that make an endpoint unhealthy
  int success_threshold = 2;  // consecutive successful probes that make an unhealthy endpoint healthy
  bool needed = true;         // false: endpoints count as healthy without probes
};

class EndpointHealth {
 public:
  EndpointHealth(const ProbeOptions& probes, const BreakerOptions& breaker)
      : probes_(probes), breaker_(breaker), probed_(probes.needed ? Probed::never : Probed::healthy) {}

  void probed(bool success);
  void answered(bool success, std::int64_t now_us) { breaker_.record(success, now_us); }
  void drain() { draining_ = true; }
  // Called when the endpoint has sent Retry-After. Until `until_us`, routing prefers all other endpoints.
  // This does not count as a failure.
  void pause(std::int64_t until_us) { paused_until_us_ = std::max(paused_until_us_, until_us); }
  bool paused(std::int64_t now_us) const { return now_us < paused_until_us_; }
  // Called when the endpoint's process has restarted. Drops the history of the old process.
  void restarted();

  Availability availability(std::int64_t now_us) const;
  const CircuitBreaker& breaker() const { return breaker_; }

 private:
  enum class Probed : std::uint8_t { never, failed, healthy, unhealthy };

  ProbeOptions probes_;
  CircuitBreaker breaker_;
  Probed probed_;
  int in_a_row_ = 0;  // consecutive probes whose result differs from probed_
  std::int64_t paused_until_us_ = 0;
  bool draining_ = false;
};

}  // namespace octavo::fleet
