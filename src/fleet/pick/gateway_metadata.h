// A request's metadata in the gateway's ext_proc messages.
#pragma once

#include <optional>
#include <string>

#include "fleet/balance/choice.h"

namespace envoy::service::ext_proc::v3 {
class ProcessingRequest;
}  // namespace envoy::service::ext_proc::v3

namespace octavo::fleet {

// The endpoints that the gateway allows, from a list or a text separated by commas. nullopt: the message has
// no such hint. A hint of another type allows no endpoint.
Subset read_subset(const envoy::service::ext_proc::v3::ProcessingRequest& message);

// The endpoint that served the request, from the message with the answer's headers. nullopt: not reported.
std::optional<std::string> read_served(const envoy::service::ext_proc::v3::ProcessingRequest& message);

}  // namespace octavo::fleet
