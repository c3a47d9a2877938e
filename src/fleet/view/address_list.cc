#include "fleet/view/address_list.h"

#include <algorithm>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

std::vector<std::string> read_address_list(std::string_view text) {
  constexpr std::string_view kWhite = " \t\r\n";
  std::vector<std::string> items;
  while (!text.empty()) {
    std::string_view item = text.substr(0, text.find(','));
    text.remove_prefix(std::min(item.size() + 1, text.size()));
    item.remove_prefix(std::min(item.find_first_not_of(kWhite), item.size()));
    if (!item.empty()) items.emplace_back(item.substr(0, item.find_last_not_of(kWhite) + 1));
  }
  return items;
}

bool address_names(std::string_view item, std::string_view endpoint) {
  const std::string_view ip = ip_of(endpoint);
  return item == endpoint || item == address_of(endpoint) || item == ip ||
         (ip.starts_with('[') && ip.ends_with(']') && item == ip.substr(1, ip.size() - 2));
}

}  // namespace octavo::fleet
