#include "fleet/decide/inflight.h"

#include <utility>

#include "base/check.h"

namespace octavo::fleet {

Booking Inflight::book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens) {
  if (endpoint >= loads_.size()) loads_.resize(endpoint + std::size_t{1});
  Load& load = loads_[endpoint];
  ++load.requests;
  load.prefill_tokens += new_tokens;
  load.context_tokens += prompt_tokens;
  load.own_tokens += new_tokens;
  return {endpoint, new_tokens, prompt_tokens, new_tokens};
}

void Inflight::first_token(Booking& booking) {
  loads_[booking.endpoint].prefill_tokens -= std::exchange(booking.prefill_tokens, 0);
}

void Inflight::grow(Booking& booking, std::int64_t new_tokens) {
  Load& load = loads_[booking.endpoint];
  load.context_tokens += new_tokens;
  load.own_tokens += new_tokens;
  booking.context_tokens += new_tokens;
  booking.own_tokens += new_tokens;
}

void Inflight::free(Booking& booking) {
  CHECK(booking.endpoint < loads_.size() && loads_[booking.endpoint].requests > 0, "endpoint {}",
        booking.endpoint);
  Load& load = loads_[booking.endpoint];
  --load.requests;
  load.prefill_tokens -= booking.prefill_tokens;
  load.context_tokens -= booking.context_tokens;
  load.own_tokens -= booking.own_tokens;
  booking = {};
}

}  // namespace octavo::fleet
