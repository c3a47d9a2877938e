// Addresses at which workers publish their KV cache events.
#pragma once

#include <string_view>
#include <vector>

#include "fleet/discover/pods.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Ports of the first endpoint of an address; each further rank has the next port. 0 if not configured.
struct EventPorts {
  int live = 0, replay = 0;
};

// "tcp://host:5557", or "tcp://host:5557,tcp://host:5558" with the replay socket. Errors: invalid_argument,
// `field`.
Result<> read_event_addresses(std::string_view text, std::string_view field, Endpoint& endpoint);

// Gives addresses to the endpoints with these labels that have none.
void add_event_addresses(std::vector<Endpoint>& endpoints, const EventPorts& ports,
                         const LabelSelector& selector = {});

}  // namespace octavo::fleet
