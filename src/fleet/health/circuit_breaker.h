// Circuit breaker (Nygard, "Release It!"): stops requests to an endpoint that keeps failing, and admits
// requests again after a timeout. The defaults are those of SGLang's router.
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct BreakerOptions {
  bool enabled = true;
  int failure_threshold = 10;            // consecutive failures that open the breaker
  int success_threshold = 3;             // successes in the half-open state that close the breaker
  std::int64_t timeout_us = 60'000'000;  // time in the open state before the breaker becomes half open
  // a failure that comes later than this after the previous failure starts a new count
  std::int64_t window_us = 120'000'000;
};

class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };  // values of the metric smg_worker_cb_state

  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  // In the half-open state the endpoint gets requests, and their outcomes close or reopen the breaker.
  State state(std::int64_t now_us) const;
  void record(bool success, std::int64_t now_us);
  void reset() { *this = CircuitBreaker(options_); }

  std::int64_t reopens_us() const { return opened_us_ + options_.timeout_us; }

 private:
  BreakerOptions options_;
  bool tripped_ = false;  // the breaker is open or half open
  int failures_ = 0;
  int successes_ = 0;
  std::int64_t opened_us_ = 0;
  std::int64_t last_failure_us_ = 0;
};

}  // namespace octavo::fleet
