#include "fleet/discover/event_addresses.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/quoted_text.h"

namespace octavo::fleet {
namespace {

constexpr int kPortMax = 65535;

bool is_address_of_events(std::string_view text) {
  constexpr std::string_view kTcp = "tcp://", kIpc = "ipc://";
  if (text.starts_with(kIpc)) return text.size() > kIpc.size();
  const std::size_t colon = text.rfind(':');
  if (!text.starts_with(kTcp) || colon <= kTcp.size()) return false;
  int port = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data() + colon + 1, last, port);
  return error == std::errc() && end == last && port >= 1 && port <= kPortMax;
}

}  // namespace

Result<> read_event_addresses(std::string_view text, std::string_view field, Endpoint& endpoint) {
  const std::size_t comma = std::min(text.find(','), text.size());
  const std::string_view live = text.substr(0, comma), replay = text.substr(std::min(comma + 1, text.size()));
  if (!is_address_of_events(live) || (comma < text.size() && !is_address_of_events(replay)))
    return invalid(field, "must be like \"tcp://host:5557\" or \"tcp://host:5557,tcp://host:5558\", got {}",
                   quoted_text(text));
  endpoint.kv_events_endpoint = live;
  endpoint.kv_replay_endpoint = replay;
  return {};
}

void add_event_addresses(std::vector<Endpoint>& endpoints, const EventPorts& ports,
                         const LabelSelector& selector) {
  std::map<std::string, int, std::less<>> seen;
  for (Endpoint& endpoint : endpoints) {
    const std::string ip(ip_of(endpoint.name));
    const int rank = seen[ip]++;
    if (!endpoint.kv_events_endpoint.empty() || !selects(selector, endpoint.labels)) continue;
    const auto at = [&](int port) {
      return port > 0 && port + rank <= kPortMax ? fmt::format("tcp://{}:{}", ip, port + rank)
                                                 : std::string();
    };
    endpoint.kv_events_endpoint = at(ports.live);
    endpoint.kv_replay_endpoint = at(ports.replay);
  }
}

}  // namespace octavo::fleet
