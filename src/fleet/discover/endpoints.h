// Reads lists of endpoints from the command line or from a file (llm-d's file-discovery).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Parses "10.0.0.1:8000" or "[::1]:8000". Refuses host names, because gateways need addresses. Returns
// invalid_argument, which names no field, if the address is invalid.
Result<Endpoint> endpoint_of_address(std::string_view address);

// Returns the role in the label llm-d.ai/role ("prefill" or "decode"). Without the label, returns both
// roles.
Role role_of_labels(const std::map<std::string, std::string>& labels);

// Gives endpoints with the same IP address consecutive data-parallel ranks, in the order of the list.
void number_ranks(std::vector<Endpoint>& endpoints);

// Reads a YAML or JSON file of at most 1 MiB:
//
//   endpoints:
//   - {name: vllm-0, namespace: default, address: 10.0.0.10, port: "8000", labels: {llm-d.ai/role: decode}}
//
// An entry may have the field kvEvents, see read_event_addresses(). Endpoints with the same IP address
// become ranks. Returns an error on the field, such as "endpoints[0].port", also if the field is unknown.
Result<std::vector<Endpoint>> read_endpoints_file(const std::string& path);

}  // namespace octavo::fleet
