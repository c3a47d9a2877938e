// Circuit breaker (Nygard, "Release It!"): stops requests to an endpoint that keeps failing, and tries again
// later. Thresholds are as in SGLang's router.
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct BreakerOptions {
  bool enabled = true;
  int failure_threshold = 10;            // number of consecutive failures that open it
  int success_threshold = 3;             // number of successes in the half-open state that close it
  std::int64_t timeout_us = 60'000'000;  // time from open to half open
  std::int64_t window_us = 120'000'000;  // maximum time between consecutive failures
};

class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };  // values of smg_worker_cb_state

  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  // In the half-open state requests are allowed; their outcomes decide the next state.
  State state(std::int64_t now_us) const;
  void record(bool success, std::int64_t now_us);
  void reset() { *this = CircuitBreaker(options_); }

  // Time when an open breaker becomes half open. Not valid in other states.
  std::int64_t reopens_us() const { return opened_us_ + options_.timeout_us; }

 private:
  BreakerOptions options_;
  bool tripped_ = false;  // open or half open
  int failures_ = 0;      // number of consecutive failures
  int successes_ = 0;     // number of successes while half open
  std::int64_t opened_us_ = 0;
  std::int64_t last_failure_us_ = 0;
};

}  // namespace octavo::fleet
