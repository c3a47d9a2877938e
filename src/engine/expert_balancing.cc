#include "engine/expert_balancing.h"

#include <boost/json/parse.hpp>

#include "base/quoted_text.h"

namespace octavo {
namespace {

namespace json = boost::json;

Result<> read(const json::value& value, std::string_view field, int least, int& out, int most = 10'000'000) {
  json::error_code not_integer;
  const int number = value.to_number<int>(not_integer);
  if (not_integer || number < least || number > most)
    return invalid(field, "must be an integer in [{}, {}]", least, most);
  out = number;
  return {};
}

Result<> read(const json::value& value, std::string_view field, bool& out) {
  if (!value.is_bool()) return invalid(field, "must be true or false");
  out = value.get_bool();
  return {};
}

}  // namespace

Result<> read_eplb_config(std::string_view text, ExpertBalancing& options) {
  json::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("eplb_config", "must be a JSON object");
  for (const auto& [key, item] : value.get_object()) {
    const std::string_view name = key;
    if (name == "window_size") {
      TRY_VOID(read(item, name, 1, options.window_size));
    } else if (name == "step_interval") {
      TRY_VOID(read(item, name, 1, options.step_interval));
    } else if (name == "num_redundant_experts") {
      TRY_VOID(read(item, name, 0, options.redundant_experts, 65'535));
    } else if (name == "log_balancedness") {
      TRY_VOID(read(item, name, options.log_balancedness));
    } else if (name == "log_balancedness_interval") {
      int unused = 0;  // a line for each plan
      TRY_VOID(read(item, name, 1, unused));
    } else if (name == "use_async") {
      TRY_VOID(read(item, name, options.use_async));
    } else if (name == "policy") {
      if (!item.is_string() || item.get_string() != "default") return invalid(name, "must be \"default\"");
    } else if (name == "communicator") {
      if (!item.is_string() && !item.is_null())
        return invalid(name, "must be a string");  // the ranks' own group
    } else {
      return invalid("eplb_config", "there is no field {}", quoted_text(name));
    }
  }
  return {};
}

}  // namespace octavo
