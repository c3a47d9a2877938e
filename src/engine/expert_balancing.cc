#include "engine/expert_balancing.h"

#include <boost/json/parse.hpp>

#include "base/json_field.h"
#include "base/quoted_text.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr int kMostSteps = 10'000'000;

}  // namespace

Result<> read_eplb_config(std::string_view text, ExpertBalancing& options) {
  boost::system::error_code not_json;
  const json::value value = json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("eplb_config", "must be a JSON object");
  for (const auto& [key, item] : value.get_object()) {
    const std::string_view name = key;
    if (name == "window_size") {
      TRY_VOID(read_field(item, name, 1, kMostSteps, options.window_size));
    } else if (name == "step_interval") {
      TRY_VOID(read_field(item, name, 1, kMostSteps, options.step_interval));
    } else if (name == "num_redundant_experts") {
      TRY_VOID(read_field(item, name, 0, 65'535, options.redundant_experts));
    } else if (name == "log_balancedness") {
      TRY_VOID(read_field(item, name, options.log_balancedness));
    } else if (name == "log_balancedness_interval") {
      int unused = 0;  // Ignored: here, each new plan is logged, whatever the interval.
      TRY_VOID(read_field(item, name, 1, kMostSteps, unused));
    } else if (name == "use_async") {
      TRY_VOID(read_field(item, name, options.use_async));
    } else if (name == "policy") {
      if (!item.is_string() || item.get_string() != "default") return invalid(name, "must be \"default\"");
    } else if (name == "communicator") {
      if (!item.is_string() && !item.is_null())
        // Must be a string, but its value is ignored: experts are always sent through the group of the ranks.
        return invalid(name, "must be a string");
    } else {
      return invalid("eplb_config", "the field {} does not exist", quoted_text(name));
    }
  }
  return {};
}

}  // namespace octavo
