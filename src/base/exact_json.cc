#include "base/exact_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value_stack.hpp>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "base/json_events.h"

namespace octavo {
namespace {

namespace json = boost::json;

// Key of objects that contain a number beyond 64 bits. No client can send it, because the parser rejects
// control characters in keys.
constexpr std::string_view kNumberKey = "\x01number";
static_assert(kNumberKey.size() == 7);

struct Digits {
  std::string digits;      // without leading and trailing zeros
  std::int64_t point = 0;  // value = 0.digits * 10^point

  bool operator==(const Digits&) const = default;
};

Digits digits_of(std::string_view number) {
  Digits out;
  if (number.starts_with('-')) number.remove_prefix(1);
  const std::string_view mantissa = number.substr(0, number.find_first_of("eE"));
  if (mantissa.size() < number.size()) {
    std::string_view power = number.substr(mantissa.size() + 1);
    if (power.starts_with('+')) power.remove_prefix(1);
    constexpr std::int64_t kPowerMax = std::int64_t{1} << 40;
    const auto [end, error] = std::from_chars(power.data(), power.data() + power.size(), out.point);
    if (error != std::errc()) out.point = power.starts_with('-') ? -kPowerMax : kPowerMax;
    out.point = std::clamp(out.point, -kPowerMax, kPowerMax);
  }
  const std::size_t whole = std::min(mantissa.find('.'), mantissa.size());
  out.digits = mantissa.substr(0, whole);
  if (whole < mantissa.size()) out.digits += mantissa.substr(whole + 1);
  out.point += static_cast<std::int64_t>(whole);
  const std::size_t first = out.digits.find_first_not_of('0');
  if (first == std::string::npos) return {};
  out.point -= static_cast<std::int64_t>(first);
  out.digits.erase(0, first);
  out.digits.erase(out.digits.find_last_not_of('0') + 1);
  return out;
}

// Returns true if the shortest text of the double is the same number.
bool holds(double value, std::string_view text) {
  // An integer that arrives here has more than 64 bits, so it stays text.
  if (text.find_first_of(".eE") == std::string_view::npos) return false;
  if (!std::isfinite(value)) return false;
  return digits_of(text) == digits_of(fmt::format("{}", value));
}

struct ExactHandler : JsonEvents {
  json::value_stack stack;
  std::string key, number;

  explicit ExactHandler(json::storage_ptr memory) : stack(memory) { stack.reset(std::move(memory)); }

  bool on_array_end(std::size_t size, error_code&) {
    stack.push_array(size);
    return true;
  }
  bool on_object_end(std::size_t size, error_code&) {
    stack.push_object(size);
    return true;
  }
  bool on_string_part(string_view part, std::size_t, error_code&) {
    stack.push_chars(part);
    return true;
  }
  bool on_string(string_view part, std::size_t, error_code&) {
    stack.push_string(part);
    return true;
  }
  bool on_key_part(string_view part, std::size_t, error_code&) {
    key.append(part.data(), part.size());
    stack.push_chars(part);
    return true;
  }
  bool on_key(string_view part, std::size_t, error_code& error) {
    key.append(part.data(), part.size());
    const bool reserved = std::exchange(key, {}) == kNumberKey;
    if (reserved) error = json::make_error_code(json::error::syntax);
    stack.push_key(part);
    return !reserved;
  }
  bool on_number_part(string_view part, error_code&) {
    number.append(part.data(), part.size());
    return true;
  }
  bool on_int64(std::int64_t value, string_view, error_code&) {
    number.clear();
    stack.push_int64(value);
    return true;
  }
  bool on_uint64(std::uint64_t value, string_view, error_code&) {
    number.clear();
    stack.push_uint64(value);
    return true;
  }
  bool on_double(double value, string_view part, error_code&) {
    number.append(part.data(), part.size());
    const std::string text = std::exchange(number, {});
    if (holds(value, text)) {
      stack.push_double(value);
    } else {
      stack.push_key({kNumberKey.data(), kNumberKey.size()});
      stack.push_string(text);
      stack.push_object(1);
    }
    return true;
  }
  bool on_bool(bool value, error_code&) {
    stack.push_bool(value);
    return true;
  }
  bool on_null(error_code&) {
    stack.push_null();
    return true;
  }
};

void write(const json::value& value, std::string& out) {
  if (value.is_double() && std::isfinite(value.get_double())) {
    const std::string text = fmt::format("{}", value.get_double());
    out += text;
    if (text.find_first_not_of("-0123456789") == std::string::npos) out += ".0";
  } else if (value.is_array()) {
    char before = '[';
    for (const json::value& item : value.get_array()) {
      out += std::exchange(before, ',');
      write(item, out);
    }
    out += before == '[' ? "[]" : "]";
  } else if (const json::string* number = long_number(value)) {
    out += *number;
  } else if (value.is_object()) {
    char before = '{';
    for (const auto& [key, item] : value.get_object()) {
      out += std::exchange(before, ',');
      out += json::serialize(key);
      out += ':';
      write(item, out);
    }
    out += before == '{' ? "{}" : "}";
  } else {
    out += json::serialize(value);
  }
}

}  // namespace

json::value parse_exact_json(std::string_view text, boost::system::error_code& error, std::size_t& taken,
                             json::storage_ptr memory, std::size_t depth_max) {
  json::parse_options options;
  options.max_depth = depth_max;
  json::basic_parser<ExactHandler> parser(options, std::move(memory));
  taken = parser.write_some(false, text.data(), text.size(), error);
  return error ? json::value() : parser.handler().stack.release();
}

json::value parse_exact_json(std::string_view text, boost::system::error_code& error, json::storage_ptr memory,
                             std::size_t depth_max) {
  std::size_t taken = 0;
  json::value value = parse_exact_json(text, error, taken, std::move(memory), depth_max);
  if (!error && text.find_first_not_of(" \t\r\n", taken) != std::string_view::npos)
    error = json::make_error_code(json::error::extra_data);
  return value;
}

const json::string* long_number(const json::value& value) {
  const json::object* object = value.if_object();
  if (object == nullptr || object->size() != 1 || object->begin()->key() != kNumberKey) return nullptr;
  return object->begin()->value().if_string();
}

std::optional<double> rounded_number(const json::value& value) {
  if (value.is_number()) return value.to_number<double>();
  if (const json::string* text = long_number(value)) return std::strtod(text->c_str(), nullptr);
  return std::nullopt;
}

std::string exact_json_text(const json::value& value) {
  std::string out;
  write(value, out);
  return out;
}

}  // namespace octavo
