// Reads the addresses at which workers publish KV cache events.
#pragma once

#include <string_view>
#include <vector>

#include "fleet/discover/pods.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// KV event ports of a server's rank 0. Rank r uses the ports plus r. 0: not configured.
struct EventPorts {
  int live = 0, replay = 0;
};

// Parses "tcp://host:5557", or "tcp://host:5557,tcp://host:5558" with the address for replays, into
// `endpoint`. Errors report `field`.
Result<> read_event_addresses(std::string_view text, std::string_view field, Endpoint& endpoint);

// Sets the event addresses of endpoints that match the selector and have no event address yet.
void add_event_addresses(std::vector<Endpoint>& endpoints, const EventPorts& ports,
                         const LabelSelector& selector = {});

}  // namespace octavo::fleet
