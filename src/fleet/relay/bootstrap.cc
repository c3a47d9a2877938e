#include "fleet/relay/bootstrap.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>

#include "fleet/relay/json_body.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// SGLang's route, whose prompt is in `text` or `input_ids`
constexpr std::string_view kNativeRoute = "/generate";
constexpr std::uint64_t kRooms = std::uint64_t{1} << 63;  // SGLang reads the number as a signed integer

// Returns the number of prompts in the request's list. Returns 0 if the prompt is not in a list.
std::size_t listed_prompts(const json::object& request) {
  for (const std::string_view name : {"prompt", "text", "input_ids"}) {
    const json::value* prompts = request.if_contains(name);
    if (prompts == nullptr || !prompts->is_array()) continue;
    const json::array& list = prompts->get_array();
    if (!list.empty() && !list.front().is_number()) return list.size();
  }
  return 0;
}

}  // namespace

bool is_divided(std::string_view path) {
  const openai::Route* route = openai::find_route(path);
  return path == kNativeRoute || (route != nullptr && route->generates());
}

Result<std::string> bootstrap_body(std::string_view body, const json::object& request,
                                   const Bootstrap& bootstrap) {
  // Refuses bodies that already contain the fields. Engines use the last of two fields with the same name,
  // which would be the client's.
  for (const std::string_view field : {"bootstrap_host", "bootstrap_port", "bootstrap_room"})
    if (request.contains(field))
      return invalid(std::string(field), "must be absent, because the router sets this field");
  const std::size_t prompts = listed_prompts(request);
  const auto value = [&](auto item) {
    if (prompts == 0) return json::serialize(json::value(item(0)));
    json::array items;
    for (std::size_t i = 0; i < prompts; ++i) items.push_back(item(i));
    return json::serialize(items);
  };
  const json::value port = bootstrap.port > 0 ? json::value(bootstrap.port) : json::value();
  std::string all =
      with_field(body, "bootstrap_room",
                 value([&](std::size_t i) { return json::value((bootstrap.draw + i) % kRooms); }));
  all = with_field(all, "bootstrap_port", value([&](std::size_t) { return port; }));
  return with_field(all, "bootstrap_host", value([&](std::size_t) { return json::value(bootstrap.host); }));
}

}  // namespace octavo::fleet
