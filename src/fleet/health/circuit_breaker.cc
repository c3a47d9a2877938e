#include "fleet/health/circuit_breaker.h"

namespace octavo::fleet {

CircuitBreaker::State CircuitBreaker::state(std::int64_t now_us) const {
  if (!tripped_) return State::closed;
  return now_us < reopens_us() ? State::open : State::half_open;
}

void CircuitBreaker::record(bool success, std::int64_t now_us) {
  if (!options_.enabled) return;
  const State before = state(now_us);
  if (success) {
    failures_ = 0;
    // In the open state a success has no effect, because the request was sent before the breaker opened.
    if (before == State::half_open && ++successes_ >= options_.success_threshold) reset();
    return;
  }
  successes_ = 0;
  if (now_us - last_failure_us_ > options_.window_us) failures_ = 0;
  last_failure_us_ = now_us;
  ++failures_;
  const bool opens =
      before == State::half_open || (before == State::closed && failures_ >= options_.failure_threshold);
  if (!opens) return;
  tripped_ = true;
  opened_us_ = now_us;
}

}  // namespace octavo::fleet
