#include "local/speculative_config.h"

#include <boost/json/parse.hpp>
#include <optional>

namespace octavo {
namespace {

Result<std::optional<int>> integer(const boost::json::object& config, std::string_view name) {
  const boost::json::value* value = config.if_contains(name);
  if (value == nullptr || value->is_null()) return std::optional<int>();
  boost::json::error_code not_integer;
  const int number = value->to_number<int>(not_integer);
  if (not_integer) return invalid(name, "must be an integer");
  return number;
}

}  // namespace

Result<NgramOptions> parse_speculative_config(std::string_view json) {
  boost::json::error_code not_json;
  const boost::json::value value = boost::json::parse(json, not_json);
  if (not_json || !value.is_object()) return invalid("speculative_config", "must be a JSON object");
  const boost::json::object& config = value.get_object();
  for (const auto& [name, ignored] : config) {
    if (name != "method" && name != "num_speculative_tokens" && name != "prompt_lookup_min" &&
        name != "prompt_lookup_max")
      return invalid("speculative_config", "field \"{}\" is not supported", std::string_view(name));
  }
  const boost::json::value* method = config.if_contains("method");
  if (method == nullptr || *method != "ngram") return invalid("method", "must be \"ngram\"");

  TRY(const std::optional<int> count, integer(config, "num_speculative_tokens"));
  TRY(const std::optional<int> least, integer(config, "prompt_lookup_min"));
  TRY(const std::optional<int> most, integer(config, "prompt_lookup_max"));
  if (!count) return invalid("num_speculative_tokens", "must be given");
  NgramOptions options;
  options.num_speculative_tokens = *count;
  options.prompt_lookup_min = least.value_or(most.value_or(options.prompt_lookup_min));
  options.prompt_lookup_max = most.value_or(least.value_or(options.prompt_lookup_max));
  TRY_VOID(validate(options));
  return options;
}

}  // namespace octavo
