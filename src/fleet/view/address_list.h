// Lists of endpoints as gateways, test harnesses and people write them: "10.0.0.1:8000, 10.0.0.2".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace octavo::fleet {

// The items between commas, without white space around them and without empty ones.
std::vector<std::string> read_address_list(std::string_view text);

// "10.0.0.1:8000" names the endpoint of this name, "10.0.0.1" all endpoints of the address. An IPv6 address
// without a port may lack its brackets.
bool address_names(std::string_view item, std::string_view endpoint);

}  // namespace octavo::fleet
