#include "fleet/discover/endpoints.h"

#include <arpa/inet.h>

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <charconv>
#include <map>

#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/discover/event_addresses.h"
#include "yaml/yaml.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::string_view kRoleLabel = "llm-d.ai/role";

bool is_address(int family, std::string_view text) {
  in6_addr parsed;
  return inet_pton(family, std::string(text).c_str(), &parsed) == 1;
}

bool is_port(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  return error == std::errc() && end == text.data() + text.size() && port >= 1 && port <= 65535;
}

Result<Endpoint> read_endpoint(const json::value& entry, const std::string& where) {
  if (!entry.is_object()) return invalid(where, "must be an object");
  Parameters fields(entry.get_object(), where);
  std::string name, space, address, port;
  fields.read("name", name);
  fields.read("namespace", space);
  fields.read("address", address);
  fields.read("port", port);
  std::string events;
  fields.read("kvEvents", events);
  Endpoint endpoint;
  if (const auto* labels = fields.get("labels")) {
    if (!labels->is_object()) return invalid(where + ".labels", "must be an object");
    for (const auto& [key, value] : labels->get_object()) {
      if (!value.is_string()) return invalid(where + ".labels." + std::string(key), "must be a string");
      endpoint.labels[key] = value.get_string();
    }
  }
  TRY_VOID(fields.done());
  if (!is_address(AF_INET, address)) return invalid(where + ".address", "must be an IPv4 address");
  if (!is_port(port)) return invalid(where + ".port", "must be a string from \"1\" to \"65535\"");
  if (!events.empty()) TRY_VOID(read_event_addresses(events, where + ".kvEvents", endpoint));
  endpoint.name = address + ":" + port;
  endpoint.url = "http://" + endpoint.name;
  endpoint.role = role_of_labels(endpoint.labels);
  endpoint.pod = name;
  return endpoint;
}

}  // namespace

Result<Endpoint> endpoint_of_address(std::string_view address) {
  const std::size_t colon = std::min(address.rfind(':'), address.size());
  const std::string_view host = address.substr(0, colon);
  const std::string_view port = address.substr(std::min(colon + 1, address.size()));
  const bool v6 = host.starts_with('[') && host.ends_with(']') && host.size() > 2 &&
                  is_address(AF_INET6, host.substr(1, host.size() - 2));
  if (!(v6 || is_address(AF_INET, host)) || !is_port(port))
    return invalid("", "{} must be an IP address with a port, like 10.0.0.1:8000", quoted_text(address));
  return Endpoint{.name = std::string(address), .url = fmt::format("http://{}", address)};
}

Role role_of_labels(const std::map<std::string, std::string>& labels) {
  const auto role = labels.find(std::string(kRoleLabel));
  if (role == labels.end()) return Role::both;
  if (role->second == "prefill") return Role::prefill;
  return role->second == "decode" ? Role::decode : Role::both;
}

void number_ranks(std::vector<Endpoint>& endpoints) {
  std::map<std::string_view, int> seen;
  for (Endpoint& endpoint : endpoints) endpoint.rank = seen[ip_of(endpoint.name)]++;
}

Result<std::vector<Endpoint>> read_endpoints_file(const std::string& path) {
  TRY(const json::value file, read_yaml_file(path, "endpoints"));
  if (!file.is_object())
    return invalid("endpoints", "{} must contain an object whose field `endpoints` is a list", path);
  Parameters fields(file.get_object(), "");
  const auto* list = fields.get("endpoints");
  TRY_VOID(fields.done());
  if (!list || !list->is_array()) return invalid("endpoints", "must be a list");
  std::vector<Endpoint> endpoints;
  for (const json::value& entry : list->get_array()) {
    const std::string where = fmt::format("endpoints[{}]", endpoints.size());
    TRY(Endpoint endpoint, read_endpoint(entry, where));
    if (std::ranges::find(endpoints, endpoint.name, &Endpoint::name) != endpoints.end())
      return invalid(where, "the endpoint {} occurs twice", endpoint.name);
    endpoints.push_back(std::move(endpoint));
  }
  number_ranks(endpoints);
  return endpoints;
}

}  // namespace octavo::fleet
