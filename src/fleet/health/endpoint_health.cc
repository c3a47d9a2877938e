#include "fleet/health/endpoint_health.h"

namespace octavo::fleet {

void EndpointHealth::probed(bool success) {
  if (probed_ == Probed::never || probed_ == Probed::failed) {
    probed_ = success ? Probed::healthy : Probed::failed;
    if (success) restarted();  // failures before the first successful probe do not count
    return;
  }
  if (success == (probed_ == Probed::healthy)) {
    in_a_row_ = 0;
    return;
  }
  if (++in_a_row_ < (success ? probes_.success_threshold : probes_.failure_threshold)) return;
  in_a_row_ = 0;
  probed_ = success ? Probed::healthy : Probed::unhealthy;
  if (success) restarted();
}

void EndpointHealth::restarted() {
  breaker_.reset();
  paused_until_us_ = 0;
}

Availability EndpointHealth::availability(std::int64_t now_us) const {
  if (draining_) return Availability::draining;
  if (probed_ == Probed::never) return Availability::unprobed;
  if (probed_ == Probed::failed) return Availability::starting;
  if (probed_ == Probed::unhealthy) return Availability::unhealthy;
  return breaker_.state(now_us) == CircuitBreaker::State::open ? Availability::broken
                                                               : Availability::available;
}

}  // namespace octavo::fleet
