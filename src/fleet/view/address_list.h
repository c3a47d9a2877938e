// Parses lists of endpoints such as "10.0.0.1:8000, 10.0.0.2", which clients and gateways send in headers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

// Returns the comma-separated items without surrounding white space. Skips empty items.
std::vector<std::string> read_address_list(std::string_view text);

// Returns whether the item names the endpoint. "10.0.0.1:8000" names one endpoint, and "10.0.0.1" names all
// endpoints of the address. An IPv6 address without a port may omit its brackets.
bool address_names(std::string_view item, std::string_view endpoint);

}  // namespace octavo::fleet
