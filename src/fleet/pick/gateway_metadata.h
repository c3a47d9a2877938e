// Reads the metadata that the gateway adds to ext_proc messages.
#pragma once

#include <optional>
#include <string>

#include "fleet/balance/choice.h"

namespace envoy::service::ext_proc::v3 {
class ProcessingRequest;
}  // namespace envoy::service::ext_proc::v3

namespace octavo::fleet {

// Returns the endpoints that the gateway allows, from a list or a comma-separated text. Returns nullopt if
// the metadata does not restrict the endpoints. Metadata of a wrong type allows no endpoint.
Subset read_subset(const envoy::service::ext_proc::v3::ProcessingRequest& message);

// Returns the endpoint that served the request, from the message with the response headers. Returns nullopt
// if the gateway does not report it.
std::optional<std::string> read_served(const envoy::service::ext_proc::v3::ProcessingRequest& message);

}  // namespace octavo::fleet
