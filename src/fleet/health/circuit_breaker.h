// Stops sending requests to an endpoint that keeps failing them, and tries again after a while (the circuit
// breaker of Nygard, "Release It!"; thresholds as in SGLang's router).
#pragma once

#include <cstdint>

namespace octavo::fleet {

struct BreakerOptions {
  bool enabled = true;
  int failure_threshold = 10;            // failures in a row open it
  int success_threshold = 3;             // successes while half open close it
  std::int64_t timeout_us = 60'000'000;  // time in the open state before half open
  std::int64_t window_us = 120'000'000;  // maximum time between failures in a row
};

class CircuitBreaker {
 public:
  enum class State : std::uint8_t { closed, open, half_open };  // numbers as in smg_worker_cb_state

  explicit CircuitBreaker(const BreakerOptions& options) : options_(options) {}

  // Half open lets requests through: their outcomes decide.
  State state(std::int64_t now_us) const;
  void record(bool success, std::int64_t now_us);
  void reset() { *this = CircuitBreaker(options_); }

  // When an open breaker becomes half open; meaningless in other states.
  std::int64_t reopens_us() const { return opened_us_ + options_.timeout_us; }

 private:
  BreakerOptions options_;
  bool tripped_ = false;  // open or half open
  int failures_ = 0;      // in a row
  int successes_ = 0;     // while half open
  std::int64_t opened_us_ = 0;
  std::int64_t last_failure_us_ = 0;
};

}  // namespace octavo::fleet
