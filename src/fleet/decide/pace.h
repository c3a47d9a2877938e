// Pace measures how fast each endpoint is, from the arrival times of its output tokens. Policies send fewer
// requests to slow endpoints, whatever the cause: an old or throttled device, other programs, or the
// network.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Progress of one request. The owner passes the same object to all calls for the request.
struct Progress {
  std::int64_t since_us = 0;  // time at which the request was sent or its last counted tokens arrived
  // prompt tokens that the endpoint had to compute before the first output token, including earlier
  // requests' prompts
  std::int64_t prompt_tokens = 0;
  std::int64_t tokens = 0;  // output tokens that have arrived after since_us
  std::int64_t output_tokens = 0;
};

class Pace {
 public:
  void first_token(EndpointId endpoint, Progress& progress, std::int64_t now_us);
  void grow(EndpointId endpoint, Progress& progress, std::int64_t new_tokens, std::int64_t now_us);
  void ended(const Progress& progress);
  void forget(EndpointId endpoint);

  // Updates the results of slowness(), unless the last update is recent.
  void compare(std::int64_t now_us);
  // Returns the endpoint's time for a unit of work, relative to the median endpoint. 1 means that the speed
  // is unknown, or that load explains the difference. Without new measurements the value decays to 1, so
  // that a slow endpoint gets requests again.
  double slowness(EndpointId endpoint) const { return endpoint < slowness_.size() ? slowness_[endpoint] : 1; }
  // Returns how many prompt tokens the median endpoint computes in the time in which it decodes a mean
  // answer. Returns 0 if this is unknown.
  double answer_in_prompt_tokens() const { return answer_in_prompt_tokens_; }

 private:
  // Microseconds per token, as the ratio of two moving averages.
  struct Rate {
    double us = 0, tokens = 0;
    int measured = 0;

    void learn(double us, double tokens);
    bool known() const;
    double us_per_token() const { return us / tokens; }
  };
  struct Speed {
    Rate prompts = {}, outputs = {};
    std::int64_t measured_us = 0;
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
