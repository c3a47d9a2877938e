#include "fleet/relay/json_body.h"

#include <fmt/format.h>

#include <boost/json/array.hpp>

#include "fleet/scan/body_json.h"

namespace octavo::fleet {

namespace json = boost::json;

std::optional<json::object> json_object(std::string_view text) {
  const auto parsed = std::make_shared<bool>(false);
  const json::storage_ptr memory = json::make_shared_resource<BodyMemory>(text.size(), parsed);
  Result<json::value> value = body_json(text, memory);
  if (!value || !value->is_object()) return std::nullopt;
  *parsed = true;
  return std::move(value->get_object());
}

bool has_several_prompts(const json::object& request) {
  const json::value* prompt = request.if_contains("prompt");
  if (prompt == nullptr || !prompt->is_array()) return false;
  const json::array& all = prompt->get_array();
  return all.size() > 1 && !all.front().is_number();
}

const json::value* find_path(const json::object& object, std::initializer_list<std::string_view> names) {
  const json::object* at = &object;
  const json::value* found = nullptr;
  for (const std::string_view name : names) {
    found = at ? at->if_contains(name) : nullptr;
    if (!found) return nullptr;
    at = found->if_object();
  }
  return found;
}

std::string with_field(std::string_view object, std::string_view name, std::string_view value) {
  const std::size_t behind = object.find('{') + 1;
  const bool alone = object.find_first_not_of(" \t\r\n", behind) == object.find('}', behind);
  return fmt::format("{}\"{}\":{}{}{}", object.substr(0, behind), name, value, alone ? "" : ",",
                     object.substr(behind));
}

}  // namespace octavo::fleet
