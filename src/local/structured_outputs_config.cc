#include "local/structured_outputs_config.h"

#include <boost/json/parse.hpp>

#include "serve/openai/generation_fields.h"

namespace octavo {

Result<grammar::JsonOptions> parse_structured_outputs_config(std::string_view json) {
  boost::system::error_code not_json;
  const boost::json::value value = boost::json::parse(json, not_json);
  if (not_json || !value.is_object()) return invalid("structured_outputs_config", "must be a JSON object");
  grammar::JsonOptions options = openai::RequestRules().json;
  for (const auto& [name, given] : value.get_object()) {
    const std::string_view field = name;
    if (given.is_null() || field == "backend" || field == "disable_fallback") continue;
    if (field == "disable_any_whitespace" || field == "disable_additional_properties") {
      if (!given.is_bool()) return invalid(field, "must be true or false");
      // disable_additional_properties has no effect, because objects with listed properties never allow
      // others.
      if (field == "disable_any_whitespace" && given.get_bool())
        options.whitespace = grammar::JsonOptions::Whitespace::none;
    } else if (field == "unknown_keywords" || field == "unique_items") {
      if (given != "ignore" && given != "refuse") return invalid(field, "must be \"ignore\" or \"refuse\"");
      (field == "unique_items" ? options.refuse_unique : options.refuse_unknown) = given == "refuse";
    } else if (field == "member_order") {
      if (given != "any" && given != "schema") return invalid(field, "must be \"any\" or \"schema\"");
      options.any_order = given == "any";
    } else {
      return invalid("structured_outputs_config", "field \"{}\" is not supported", field);
    }
  }
  return options;
}

}  // namespace octavo
