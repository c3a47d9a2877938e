// Circuit breaker (Nygard, "Release It!"): stops requests to an endpoint that keeps failing, and admits them
// again after a timeout. Defaults are those of SGLang's router.
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct BreakerOptions {
  bool enabled = true;
  int failure_threshold = 10;            // consecutive failures until the breaker opens
  int success_threshold = 3;             // successes in the half-open state until the breaker closes
  std::int64_t timeout_us = 60'000'000;  // time from open to half open
  std::int64_t window_us = 120'000'000;  // maximum time between two failures that count as consecutive
};

class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };  // values of the metric smg_worker_cb_state

  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  // The half-open state admits requests; their outcomes decide the next state.
  State state(std::int64_t now_us) const;
  void record(bool success, std::int64_t now_us);
  void reset() { *this = CircuitBreaker(options_); }

  // Time at which an open breaker becomes half open. Valid only in the open state.
  std::int64_t reopens_us() const { return opened_us_ + options_.timeout_us; }

 private:
  BreakerOptions options_;
  bool tripped_ = false;  // open or half open
  int failures_ = 0;      // consecutive failures
  int successes_ = 0;     // successes in the half-open state
  std::int64_t opened_us_ = 0;
  std::int64_t last_failure_us_ = 0;
};

}  // namespace octavo::fleet
