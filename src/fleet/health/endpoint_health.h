// All that decides whether an endpoint gets requests: probes, its circuit breaker, draining.
#pragma once

#include <cstdint>

#include "fleet/health/circuit_breaker.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct ProbeOptions {
  int failure_threshold = 3;  // failed probes in a row: unhealthy
  int success_threshold =
      2;  // successful ones in a row: healthy again; the first ever is enough to begin with
};

class EndpointHealth {
 public:
  EndpointHealth(const ProbeOptions& probes, const BreakerOptions& breaker)
      : probes_(probes), breaker_(breaker) {}

  void probed(bool success);
  void answered(bool success, std::int64_t now_us) { breaker_.record(success, now_us); }
  void drain() { draining_ = true; }

  Availability availability(std::int64_t now_us) const;
  const CircuitBreaker& breaker() const { return breaker_; }

 private:
  enum class Probed : std::uint8_t { never, healthy, unhealthy };

  ProbeOptions probes_;
  CircuitBreaker breaker_;
  Probed probed_ = Probed::never;
  int in_a_row_ = 0;  // probes that contradict probed_
  bool draining_ = false;
};

}  // namespace octavo::fleet
