// A request's metadata in the gateway's ext_proc messages.
#pragma once

#include <optional>
#include <string>

#include "fleet/balance/choice.h"

namespace envoy::service::ext_proc::v3 {
class ProcessingRequest;
}  // namespace envoy::service::ext_proc::v3

namespace octavo::fleet {

// The endpoints that it allows: a list, or text with commas between the addresses. Empty if the message has
// no hint. A hint of another type allows none.
Subset read_subset(const envoy::service::ext_proc::v3::ProcessingRequest& message);

// The endpoint that served the request, with an answer's headers. Returns nullopt if not reported.
std::optional<std::string> read_served(const envoy::service::ext_proc::v3::ProcessingRequest& message);

}  // namespace octavo::fleet
