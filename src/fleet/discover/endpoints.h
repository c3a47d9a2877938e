// Fixed lists of endpoints: addresses on the command line, or a file (llm-d's file-discovery).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// Parses "10.0.0.1:8000" or "[::1]:8000". A gateway needs an address, so host names are refused. Errors:
// invalid_argument, without a field.
Result<Endpoint> endpoint_of_address(std::string_view address);

// The role in the label llm-d.ai/role: "prefill", "decode", or both.
Role role_of_labels(const std::map<std::string, std::string>& labels);

// Gives ranks to endpoints with the same address, in the order of the list.
void number_ranks(std::vector<Endpoint>& endpoints);

// Reads a YAML or JSON file of at most 1 MiB; unknown fields are errors:
//
//   endpoints:
//   - {name: vllm-0, namespace: default, address: 10.0.0.10, port: "8000", labels: {llm-d.ai/role: decode}}
//
// An entry may have kvEvents, see read_event_addresses().
//
// Endpoints of one address get ranks. Errors name the field, such as "endpoints[0].port".
Result<std::vector<Endpoint>> read_endpoints_file(const std::string& path);

}  // namespace octavo::fleet
