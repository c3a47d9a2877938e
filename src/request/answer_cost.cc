#include "request/answer_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <utility>

namespace octavo {
namespace {

// Larger values would not be exact in JSON, and their sums could overflow.
constexpr std::int64_t kValueMax = std::int64_t{1} << 53;

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

}  // namespace

std::string cost_text(const AnswerCost& cost) {
  std::string text;
  for (std::size_t i = 0; i < kCostUnits; ++i)
    if (cost.units[i] != 0)
      fmt::format_to(std::back_inserter(text), "{}{}={}", text.empty() ? "" : ", ", kCostFields[i].name,
                     cost.units[i]);
  return text.empty() ? "output_tokens=0" : text;
}

std::optional<AnswerCost> parse_cost_text(std::string_view text) {
  AnswerCost cost;
  std::array<bool, kCostUnits> given{};
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view entry = without_spaces(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) return std::nullopt;
    const std::string_view number = entry.substr(equals + 1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), value);
    if (error != std::errc() || end != number.data() + number.size()) return std::nullopt;
    if (value < 0 || value > kValueMax) return std::nullopt;
    const auto field = std::ranges::find(kCostFields, entry.substr(0, equals), &CostField::name);
    if (field == kCostFields.end()) continue;
    const auto unit = static_cast<std::size_t>(field - kCostFields.begin());
    if (std::exchange(given[unit], true)) return std::nullopt;
    cost.units[unit] = value;
  }
  return cost;
}

}  // namespace octavo
