#include "fleet/decide/parameters.h"

#include <algorithm>
#include <array>
#include <boost/json/value.hpp>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace octavo::fleet {

std::optional<double> duration_us(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 6> kUnits{
      {{"ns", 1e-3}, {"us", 1}, {"ms", 1e3}, {"s", 1e6}, {"m", 60e6}, {"h", 3600e6}}};
  if (text == "0") return 0;
  std::optional<double> sum;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc()) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    const std::string_view name = text.substr(0, text.find_first_of("0123456789.-"));
    const auto unit = std::ranges::find(kUnits, name, &std::pair<std::string_view, double>::first);
    if (unit == kUnits.end()) return std::nullopt;
    sum = sum.value_or(0) + number * unit->second;
    text.remove_prefix(name.size());
  }
  return sum;
}

std::optional<std::uint64_t> quantity(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  const std::string_view unit = text.substr(static_cast<std::size_t>(end - text.data()));
  constexpr std::array<std::pair<std::string_view, double>, 10> kUnits{{{"", 1},
                                                                        {"m", 1e-3},
                                                                        {"k", 1e3},
                                                                        {"M", 1e6},
                                                                        {"G", 1e9},
                                                                        {"T", 1e12},
                                                                        {"Ki", 0x1p10},
                                                                        {"Mi", 0x1p20},
                                                                        {"Gi", 0x1p30},
                                                                        {"Ti", 0x1p40}}};
  for (const auto& [name, factor] : kUnits)
    if (unit == name && number >= 0 && number * factor <= 0x1p50)
      return static_cast<std::uint64_t>(std::ceil(number * factor));
  return std::nullopt;
}

Parameters::Parameters(const boost::json::object& values, std::string where)
    : values_(values), where_(std::move(where)) {}

std::string Parameters::path(std::string_view name) const {
  return where_.empty() ? std::string(name) : fmt::format("{}.{}", where_, name);
}

const boost::json::value* Parameters::get(std::string_view name) {
  read_.push_back(name);
  return values_.if_contains(name);
}

void Parameters::fail(std::string_view name, std::string_view message) {
  if (first_error_) first_error_ = invalid(path(name), "{}", message);
}

void Parameters::read(std::string_view name, bool& value) {
  const auto* found = get(name);
  if (!found) return;
  found->is_bool() ? void(value = found->get_bool()) : fail(name, "must be true or false");
}

void Parameters::read(std::string_view name, std::string& value) {
  const auto* found = get(name);
  if (!found) return;
  found->is_string() ? void(value = found->get_string()) : fail(name, "must be a string");
}

void Parameters::read(std::string_view name, std::int64_t& value, std::int64_t min, std::int64_t max) {
  const auto* found = get(name);
  if (!found) return;
  boost::system::error_code error;
  const auto number = found->to_number<std::int64_t>(error);
  if (error || number < min || number > max)
    return fail(name, fmt::format("must be an integer from {} to {}", min, max));
  value = number;
}

void Parameters::read(std::string_view name, double& value, double min, double max) {
  const auto* found = get(name);
  if (!found) return;
  boost::system::error_code error;
  const auto number = found->to_number<double>(error);
  if (error || !(number >= min && number <= max))
    return fail(name, fmt::format("must be a number from {} to {}", min, max));
  value = number;
}

void Parameters::read_duration(std::string_view name, std::int64_t& value_us) {
  const auto* found = get(name);
  if (!found) return;
  std::optional<double> us;
  boost::system::error_code error;
  if (found->is_string()) {
    us = duration_us(found->get_string());
  } else if (found->is_number()) {
    us = found->to_number<double>(error) * 1e6;
  }
  constexpr double kYear = 365 * 86400e6;
  if (!us || !(*us >= 0 && *us <= kYear))
    return fail(name, "must be a duration like \"60s\" or \"250ms\", at most a year");
  value_us = std::llround(*us);
}

void Parameters::read_quantity(std::string_view name, std::uint64_t& value, std::uint64_t max) {
  const auto* found = get(name);
  if (!found) return;
  std::optional<std::uint64_t> number;
  boost::system::error_code error;
  if (found->is_string()) {
    number = quantity(found->get_string());
  } else if (found->is_number()) {
    number = found->to_number<std::uint64_t>(error);
  }
  if (!number || error || *number > max)
    return fail(name, fmt::format("must be a number or a quantity like \"1k\" or \"512Mi\", at most {}", max));
  value = *number;
}

void Parameters::read_object(std::string_view name,
                             const std::function<void(Parameters& fields)>& read_fields) {
  const auto* found = get(name);
  if (!found) return;
  if (!found->is_object()) return fail(name, "must be an object");
  Parameters fields(found->get_object(), path(name));
  read_fields(fields);
  if (const auto done = fields.done(); !done && first_error_) first_error_ = done;
}

Result<> Parameters::done() const {
  if (!first_error_) return first_error_;
  for (const auto& [name, value] : values_)
    if (std::ranges::find(read_, std::string_view(name)) == read_.end())
      return invalid(path(name), "is not a known field");
  return {};
}

}  // namespace octavo::fleet
