// sglang: both engines get the request at once and meet by its bootstrap fields.
#include <fmt/format.h>

#include "fleet/relay/json_body.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/two_legs.h"

namespace octavo::fleet {

void run_sglang(const std::shared_ptr<TwoLegs>& legs, boost::json::object prompt) {
  // Engines use the last of two fields with the same name, which is the client's.
  for (const std::string_view field : {"bootstrap_host", "bootstrap_port", "bootstrap_room"})
    if (prompt.contains(field)) return legs->refuse(400, fmt::format("{} is not for clients to give", field));
  constexpr std::uint64_t kRooms = std::uint64_t{1} << 63;  // a number that SGLang reads as signed
  std::string body = with_field(legs->body(), "bootstrap_room", fmt::format("{}", legs->draw() % kRooms));
  body = with_field(body, "bootstrap_port", fmt::format("{}", legs->options().bootstrap_port));
  body = with_field(body, "bootstrap_host", fmt::format("\"{}\"", legs->prefiller().host));
  legs->prefill_meanwhile(body);
  legs->decode(std::move(body));
}

}  // namespace octavo::fleet
