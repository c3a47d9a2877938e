#include "fleet/route/usage_report.h"

#include <charconv>

namespace octavo::fleet {
namespace {

// Returns the value of the last member with this name.
std::optional<std::int64_t> number_of(std::string_view json, std::string_view quoted_name) {
  const std::size_t at = json.rfind(quoted_name);
  if (at == std::string_view::npos) return std::nullopt;
  json.remove_prefix(at + quoted_name.size());
  const std::size_t begin = json.find_first_not_of(" :");
  if (begin == std::string_view::npos) return std::nullopt;
  json.remove_prefix(begin);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(json.data(), json.data() + json.size(), number);
  return error == std::errc() && end != json.data() + json.size() ? std::optional(number) : std::nullopt;
}

}  // namespace

// Searches the text without parsing it, because a response may have megabytes. Quotes within JSON strings
// are escaped, so no string can contain a match.
std::optional<UsageReport> read_usage(std::string_view json) {
  const auto prompt = number_of(json, R"("prompt_tokens")");
  if (!prompt) return std::nullopt;
  return UsageReport{.prompt_tokens = *prompt,
                     .cached_tokens = number_of(json, R"("cached_tokens")").value_or(0)};
}

}  // namespace octavo::fleet
