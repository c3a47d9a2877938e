// Measures the speed of each endpoint from the arrival times of its answers. So policies know the slow
// endpoints, whatever the cause: an old or throttled device, other programs, network latency.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Progress of one request. The owner passes it to all calls for this request.
struct Progress {
  std::int64_t since_us = 0;  // time at which the request was sent, or its last counted tokens arrived
  // prompt tokens to compute before the first output token, including those of earlier requests
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;         // output tokens since since_us
  std::int64_t output_tokens = 0;  // all output tokens
};

class Pace {
 public:
  void first_token(EndpointId endpoint, Progress& progress, std::int64_t now_us);
  void grow(EndpointId endpoint, Progress& progress, std::int64_t new_tokens, std::int64_t now_us);
  void ended(const Progress& progress);
  void forget(EndpointId endpoint);

  // Compares the endpoints, unless the last comparison is recent. Call it before slowness().
  void compare(std::int64_t now_us);
  // Returns the time that the endpoint needs for its work, relative to the median endpoint. 1: unknown, or a
  // difference that load explains. Without new measurements the value returns to 1, so that the endpoint gets
  // requests again.
  double slowness(EndpointId endpoint) const { return endpoint < slowness_.size() ? slowness_[endpoint] : 1; }
  // Returns the number of prompt tokens that the median endpoint computes in the time of a mean answer; 0:
  // unknown.
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
  double answer_tokens_ = 0;      // moving average of output tokens per answer; 0: unknown
  std::vector<double> slowness_;  // [EndpointId]
  double answer_in_prompt_tokens_ = 0;
  std::int64_t compared_us_ = kNeverObserved;
};

}  // namespace octavo::fleet
