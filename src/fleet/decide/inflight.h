// What was sent to each endpoint and has not ended: the part of its load that no metric shows yet.
#pragma once

#include <cstdint>
#include <vector>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

struct Load {
  int requests = 0;
  std::int64_t prefill_tokens = 0;  // to be computed before first tokens come: prompts less what is cached
  std::int64_t context_tokens = 0;  // prompts, and what was answered to them
  std::int64_t own_tokens = 0;      // of these what the endpoint did not hold: what is shared counts once
};

// One request's share of its endpoint's load. Its owner gives it back with Inflight::free().
struct Booking {
  EndpointId endpoint = kNoEndpoint;
  std::int64_t prefill_tokens = 0;
  std::int64_t context_tokens = 0;
  std::int64_t own_tokens = 0;
};

class Inflight {
 public:
  // new_tokens: those of the prompt that the endpoint does not hold.
  Booking book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens);
  void first_token(Booking& booking);                    // the prompt is computed
  void grow(Booking& booking, std::int64_t new_tokens);  // more of the answer is there
  void free(Booking& booking);

  Load load(EndpointId endpoint) const { return endpoint < loads_.size() ? loads_[endpoint] : Load{}; }

 private:
  std::vector<Load> loads_;  // [EndpointId]
};

}  // namespace octavo::fleet
