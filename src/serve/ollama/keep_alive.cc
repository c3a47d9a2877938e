#include "serve/ollama/keep_alive.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <string_view>
#include <utility>

namespace octavo::ollama {
namespace {

namespace json = boost::json;

constexpr std::int64_t kForever = -1;
constexpr double kSecondsMax = 1e9;  // longer times mean for ever

constexpr std::pair<std::string_view, double> kUnits[] = {
    {"ns", 1e-9}, {"us", 1e-6}, {"µs", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"m", 60}, {"h", 3600}};

// Reads a duration as Go writes it. Returns seconds.
std::optional<double> duration(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  constexpr std::string_view kNumber = "0123456789.";
  double sum = 0;
  while (!text.empty()) {
    const std::size_t digits = std::min(text.find_first_not_of(kNumber), text.size());
    double number = 0;
    const auto [end, failed] =
        std::from_chars(text.data(), text.data() + digits, number, std::chars_format::fixed);
    if (failed != std::errc{} || end != text.data() + digits) return std::nullopt;
    text.remove_prefix(digits);
    const std::string_view name = text.substr(0, text.find_first_of(kNumber));
    const auto unit = std::ranges::find(kUnits, name, &std::pair<std::string_view, double>::first);
    if (unit == std::end(kUnits)) return std::nullopt;
    text.remove_prefix(name.size());
    sum += number * unit->second;
  }
  return negative ? -sum : sum;
}

bool is_empty(const json::object& body, std::string_view field) {
  const json::value* value = body.if_contains(field);
  if (value == nullptr || value->is_null()) return true;
  if (value->is_string()) return value->get_string().empty();
  return value->is_array() && value->get_array().empty();
}

}  // namespace

Result<std::int64_t> keep_alive_us(const json::value& value) {
  std::optional<double> seconds;
  if (value.is_string())
    seconds = duration(value.get_string());
  else if (value.is_number())
    seconds = value.to_number<double>();
  if (!seconds)
    return invalid("keep_alive", "must be a number of seconds or a duration such as \"10m\", got {}",
                   json::serialize(value).substr(0, 100));
  if (*seconds < 0 || *seconds > kSecondsMax) return kForever;
  return static_cast<std::int64_t>(*seconds * 1e6);
}

Result<std::optional<std::int64_t>> read_keep_alive(const json::object& body) {
  const json::value* value = body.if_contains("keep_alive");
  if (value == nullptr || value->is_null()) return std::nullopt;
  TRY(const std::int64_t us, keep_alive_us(*value));
  return us;
}

std::optional<Shape> hold_of(std::string_view path, const json::object& body) {
  if (path == "/api/chat" && is_empty(body, "messages")) return Shape::chat;
  const bool no_prompt = is_empty(body, "prompt") && is_empty(body, "suffix") && is_empty(body, "images");
  if (path == "/api/generate" && no_prompt) return Shape::generate;
  return std::nullopt;
}

}  // namespace octavo::ollama
