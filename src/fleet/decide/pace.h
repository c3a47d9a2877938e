// Measured speed of each endpoint, from the times at which its answers arrive. So policies know which
// endpoints are slow, whatever the reason: an old device, a throttled one, a neighbour, a long way.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Progress of one request. Its owner passes it to all calls for the request.
struct Progress {
  std::int64_t since_us = 0;       // when the request was sent, or when the last counted tokens arrived
  std::int64_t prompt_tokens = 0;  // prompt tokens that the endpoint computes before the first output token,
                                   // with those of earlier requests
  std::int64_t tokens = 0;         // output tokens since since_us
  std::int64_t output_tokens = 0;  // all output tokens
};

class Pace {
 public:
  void first_token(EndpointId endpoint, Progress& progress, std::int64_t now_us);
  void grow(EndpointId endpoint, Progress& progress, std::int64_t new_tokens, std::int64_t now_us);
  void ended(const Progress& progress);
  void forget(EndpointId endpoint);

  // Compares the endpoints. Call it before slowness(); it does nothing if the last comparison is recent.
  void compare(std::int64_t now_us);
  // Time that the endpoint needs for its work, relative to the median endpoint. 1: unknown, or within the
  // variation that load causes. Without new measurements, the value returns to 1, so that the endpoint gets
  // requests again.
  double slowness(EndpointId endpoint) const { return endpoint < slowness_.size() ? slowness_[endpoint] : 1; }
  // Number of prompt tokens that the median endpoint computes in the time of a mean answer; 0: unknown.
  double answer_in_prompt_tokens() const { return answer_in_prompt_tokens_; }

 private:
  // Microseconds per token: the ratio of two moving averages.
  struct Rate {
    double us = 0, tokens = 0;
    int measured = 0;

    void learn(double us, double tokens);
    bool known() const;
    double us_per_token() const { return us / tokens; }
  };
  struct Speed {
    Rate prompts = {}, outputs = {};
    std::int64_t measured_us = 0;  // time of the last measurement
  };

  Speed& speed(EndpointId endpoint, std::int64_t now_us);
  double median(Rate Speed::* rate, bool with_outputs) const;  // 0: no endpoint has this rate

  std::vector<Speed> speeds_;     // [EndpointId]
  double answer_tokens_ = 0;      // moving average of the number of output tokens; 0: unknown
  std::vector<double> slowness_;  // [EndpointId]
  double answer_in_prompt_tokens_ = 0;
  std::int64_t compared_us_ = kNeverObserved;
};

}  // namespace octavo::fleet
