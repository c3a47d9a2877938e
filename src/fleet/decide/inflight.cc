#include "fleet/decide/inflight.h"

#include <utility>

#include "base/check.h"

namespace octavo::fleet {

Load& Inflight::grown_at(Loads& loads, EndpointId endpoint) {
  if (endpoint >= loads.size()) loads.resize(endpoint + std::size_t{1});
  return loads[endpoint];
}

Booking Inflight::book(EndpointId endpoint, std::int64_t prompt_tokens, std::int64_t new_tokens) {
  grown_at(loads_, endpoint) += {1, new_tokens, prompt_tokens, new_tokens};
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

void Inflight::peer_has(PeerId peer, EndpointId endpoint, const Load& load) {
  grown_at(peers_[peer], endpoint) = load;
  sum_peers(endpoint);
}

void Inflight::forget_peer(PeerId peer) {
  peers_.erase(peer);
  for (EndpointId endpoint = 0; endpoint < of_peers_.size(); ++endpoint) sum_peers(endpoint);
}

void Inflight::forget(EndpointId endpoint) {
  for (auto& [peer, loads] : peers_)
    if (endpoint < loads.size()) loads[endpoint] = {};
  sum_peers(endpoint);
}

void Inflight::sum_peers(EndpointId endpoint) {
  Load sum;
  for (const auto& [peer, loads] : peers_) sum += at(loads, endpoint);
  if (endpoint < of_peers_.size() || sum != Load{}) grown_at(of_peers_, endpoint) = sum;
}

}  // namespace octavo::fleet
