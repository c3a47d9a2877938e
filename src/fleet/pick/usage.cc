#include "fleet/pick/usage.h"

#include <boost/json/stream_parser.hpp>
#include <boost/json/value.hpp>

namespace octavo::fleet {
namespace {

namespace json = boost::json;

std::int64_t number(const json::object& usage, std::string_view name, std::string_view other_name) {
  for (const std::string_view key : {name, other_name}) {
    boost::system::error_code error;
    if (const auto* found = usage.if_contains(key))
      if (const auto value = found->to_number<std::int64_t>(error); !error && value >= 0) return value;
  }
  return -1;
}

std::int64_t cached(const json::object& usage) {
  const auto* details = usage.if_contains("prompt_tokens_details");
  if (details && details->is_object()) return number(details->get_object(), "cached_tokens", "cached_tokens");
  return number(usage, "cache_read_input_tokens", "cache_read_input_tokens");
}

}  // namespace

std::optional<json::object> usage_object(std::string_view tail) {
  constexpr std::string_view kName = "\"usage\"";
  for (std::size_t at = tail.rfind(kName); at != std::string_view::npos;
       at = at == 0 ? std::string_view::npos : tail.rfind(kName, at - 1)) {
    const std::size_t begin = tail.find_first_not_of(": \t\r\n", at + kName.size());
    // in a stream, `usage` is null in all events except the last
    if (begin == std::string_view::npos || tail[begin] != '{') continue;
    json::stream_parser parser;
    boost::system::error_code error;
    parser.write_some(tail.data() + begin, tail.size() - begin, error);
    if (error || !parser.done()) continue;
    return parser.release().get_object();
  }
  return std::nullopt;
}

Usage token_counts(const std::optional<json::object>& usage) {
  if (!usage) return {};
  return {number(*usage, "prompt_tokens", "input_tokens"),
          number(*usage, "completion_tokens", "output_tokens"), cached(*usage)};
}

}  // namespace octavo::fleet
