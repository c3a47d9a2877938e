#include "fleet/relay/refusal.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <ctime>
#include <string>

#include "fleet/relay/json_body.h"

namespace octavo::fleet {

namespace {

constexpr double kRetryAfterMaxS = 1e9;

// Parses the three date formats of RFC 9110. All dates are in GMT.
std::optional<double> seconds_until(const std::string& date) {
  for (const char* form :
       {"%a, %d %b %Y %H:%M:%S GMT", "%A, %d-%b-%y %H:%M:%S GMT", "%a %b %d %H:%M:%S %Y"}) {
    std::tm parts{};
    const char* end = strptime(date.c_str(), form, &parts);
    if (end && *end == '\0') return std::max(std::difftime(timegm(&parts), std::time(nullptr)), 0.0);
  }
  return std::nullopt;
}

}  // namespace

bool worth_a_retry(int status) {
  constexpr std::array<int, 8> kStatuses{408, 425, 429, 500, 502, 503, 504, 529};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

// The status 529 is Anthropic's overloaded_error.
bool is_backpressure(int status) { return status == 429 || status == 503 || status == 529; }

std::optional<std::int64_t> retry_after_s(const http::Response& answer) {
  const auto text = answer.headers.find("Retry-After");
  if (!text) return std::nullopt;
  double number = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), number);
  const bool whole = error == std::errc() && end == text->data() + text->size() && number >= 0;
  const std::optional<double> seconds = whole ? number : seconds_until(std::string(*text));
  if (!seconds) return std::nullopt;
  return static_cast<std::int64_t>(std::ceil(std::min(*seconds, kRetryAfterMaxS)));
}

bool is_the_requests_own(std::string_view body) {
  const auto answer = json_object(body);
  const auto* param = answer ? find_path(*answer, {"error", "param"}) : nullptr;
  return param && param->is_string() && !param->get_string().empty();
}

bool lacks_model(std::string_view body, std::string_view model) {
  if (model.empty()) return false;
  return std::ranges::any_of(std::string_view("`'\""), [&](char mark) {
    const std::string_view close = mark == '"' ? "\\\"" : std::string_view(&mark, 1);  // a quote in JSON
    return body.contains(fmt::format("{}{}{}", mark, model, close));
  });
}

}  // namespace octavo::fleet
