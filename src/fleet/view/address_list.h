// Parses lists of endpoints such as "10.0.0.1:8000, 10.0.0.2", which come from gateways, test programs and
// users.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

// The items between commas, without surrounding white space. Skips empty items.
std::vector<std::string> read_address_list(std::string_view text);

// Whether the item names the endpoint: "10.0.0.1:8000" names only this endpoint, "10.0.0.1" all endpoints of
// the address. An IPv6 address without a port may lack its brackets.
bool address_names(std::string_view item, std::string_view endpoint);

}  // namespace octavo::fleet
