// Which endpoints there are, where nobody else keeps the list: addresses on the command line, or a file
// (llm-d's file-discovery).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/view/endpoint.h"

namespace octavo::fleet {

// "10.0.0.1:8000" or "[::1]:8000": a gateway needs an address and accepts no host name. Errors:
// invalid_argument, without a field.
Result<Endpoint> endpoint_of_address(std::string_view address);

// The role that the label llm-d.ai/role names: "prefill", "decode", or both.
Role role_of_labels(const std::map<std::string, std::string>& labels);

// The endpoints of one address are its ranks, in the order of the list.
void number_ranks(std::vector<Endpoint>& endpoints);

// A file in YAML or JSON, at most 1 MiB, strict:
//
//   endpoints:
//   - {name: vllm-0, namespace: default, address: 10.0.0.10, port: "8000", labels: {llm-d.ai/role: decode}}
//
// An entry may have kvEvents, see read_event_addresses().
//
// The result has numbered ranks. Errors name the field, like "endpoints[0].port".
Result<std::vector<Endpoint>> read_endpoints_file(const std::string& path);

}  // namespace octavo::fleet
