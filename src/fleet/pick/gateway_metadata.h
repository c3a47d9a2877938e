// Reads a request's metadata in ext_proc messages.
#pragma once

#include <optional>
#include <string>

#include "fleet/balance/choice.h"

namespace envoy::service::ext_proc::v3 {
class ProcessingRequest;
}  // namespace envoy::service::ext_proc::v3

namespace octavo::fleet {

// Returns the endpoints that the gateway allows: a list, or text with commas; nullopt if the metadata has
// none. Metadata of another type allows no endpoint.
Subset read_subset(const envoy::service::ext_proc::v3::ProcessingRequest& message);

// Returns the endpoint that served the request, from the message with the answer's headers; nullopt if it is
// not reported.
std::optional<std::string> read_served(const envoy::service::ext_proc::v3::ProcessingRequest& message);

}  // namespace octavo::fleet
