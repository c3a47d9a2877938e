#include "local/flag_table.h"

#include <fmt/format.h>

#include <boost/json/parse.hpp>
#include <charconv>
#include <concepts>
#include <limits>
#include <sstream>

#include "local/numbers.h"

namespace octavo {
namespace {

std::vector<std::string> parts_of(const std::string& names) {
  std::vector<std::string> parts;
  std::istringstream text(names);
  for (std::string part; std::getline(text, part, '|');) parts.push_back(part);
  return parts;
}

// Expands suffixes, as in 32k and 1M. The range is checked later.
const CLI::Validator& suffix() {
  static const CLI::Validator expand(
      [](std::string& text) {
        text = expand_suffix(text);
        return std::string();
      },
      "");
  return expand;
}

// Replaces CLI11's own check, whose error message would print the largest double.
CLI::Validator not_negative(bool suffix) {
  return {[suffix](const std::string& text) {
            double number = -1;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
            const bool fine = error == std::errc{} && end == text.data() + text.size() && number >= 0;
            return fine ? std::string()
                        : fmt::format("must be a number from 0 on{}, got {}",
                                      suffix ? ", such as 512M or 4GiB" : "", text);
          },
          "NONNEGATIVE"};
}

std::string shown(std::integral auto number) { return std::to_string(number); }
std::string shown(std::floating_point auto number) { return fmt::format("{:g}", number); }

// Returns " from 1 to 9", or "" if every number that fits is valid.
template <class Number>
std::string limits_text(Number min, Number max) {
  using Limits = std::numeric_limits<Number>;
  if (std::floating_point<Number> && min == Limits::lowest() && max == Limits::max()) return "";
  return fmt::format(" from {} to {}", shown(min), shown(max));
}

struct Check {
  CLI::Option& option;

  void operator()(std::monostate) const {}
  template <class Number>
  void operator()(const Between<Number>& range) const {
    if (range.suffix) option.transform(suffix());
    option.check(number_between(range.min, range.max));
  }
  void operator()(const NotNegative& range) const {
    if (range.suffix) option.transform(suffix());
    option.check(not_negative(range.suffix));
  }
  void operator()(const OneOf& choice) const {
    option.check(CLI::IsMember(parts_of(std::string(choice.names))));
  }
  void operator()(const OneOfList& choice) const { option.check(CLI::IsMember(choice.names())); }
  void operator()(Folder) const { option.check(CLI::ExistingDirectory); }
};

}  // namespace

template <class Number>
CLI::Validator number_between(Number min, Number max) {
  const std::string limits = limits_text(min, max);
  // The help shows the limits of a range, but not those of a type.
  const bool is_range =
      min != std::numeric_limits<Number>::lowest() || max != std::numeric_limits<Number>::max();
  return {[min, max, limits](const std::string& text) {
            Number number{};
            if (CLI::detail::lexical_cast(text, number) && number >= min && number <= max)
              return std::string();
            return fmt::format("must be a {}number{}, got {}", std::integral<Number> ? "whole " : "", limits,
                               text);
          },
          is_range ? fmt::format("NUMBER in [{} - {}]", shown(min), shown(max)) : std::string()};
}
template CLI::Validator number_between(int, int);
template CLI::Validator number_between(std::int64_t, std::int64_t);
template CLI::Validator number_between(std::uint64_t, std::uint64_t);
template CLI::Validator number_between(std::uint16_t, std::uint16_t);
template CLI::Validator number_between(std::uint32_t, std::uint32_t);
template CLI::Validator number_between(float, float);
template CLI::Validator number_between(double, double);

std::string text_of(const FlagHelp& help) {
  if (const auto* const text = std::get_if<const char*>(&help)) return *text;
  return std::get<1>(help)();
}

Result<boost::json::object> json_object(const std::string& text) {
  boost::system::error_code not_json;
  boost::json::value value = boost::json::parse(text, not_json);
  if (not_json || !value.is_object()) return invalid("", "must be a JSON object, got {}", text);
  return std::move(value.get_object());
}

void refuse_flag(const std::string& name, const Error& error) {
  throw CLI::ValidationError(name, error.field.empty() ? error.message : error.field + " " + error.message);
}

void finish_flag(CLI::App& command, CLI::Option& option, const std::string& group, const FlagValues& values,
                 const FlagRest& rest) {
  option.group(group);
  std::visit(Check{option}, values);
  option.required(rest.required);
  if (rest.delimiter != 0) option.delimiter(rest.delimiter);
  if (!rest.environment.empty()) option.envname(std::string(rest.environment));
  if (!rest.needs.empty()) option.needs(command.get_option(std::string(rest.needs)));
  if (!rest.excludes.empty()) option.excludes(command.get_option(std::string(rest.excludes)));
}

}  // namespace octavo
