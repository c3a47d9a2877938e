#include "openai/request_fields.h"

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cmath>
#include <iterator>

#include "base/json_encoding.h"
#include "openai/json_problem.h"

namespace octavo::openai {

namespace json = boost::json;

namespace {

// Returns a short text for an invalid value, for error messages.
std::string shown(const json::value& value) {
  constexpr std::size_t kShownMax = 40;
  if (const json::string* number = long_number(value)) {
    if (!std::isfinite(*rounded_number(value))) return "a number beyond 1.8e308";
    return number->size() > kShownMax ? fmt::format("a number of {} digits", number->size())
                                      : std::string(*number);
  }
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  if (value.is_string() && value.get_string().size() > kShownMax) return "a long string";
  if (value.is_double()) return fmt::format("{}", value.get_double());
  return json::serialize(value);
}

Result<std::string> text_of(const json::value& value, std::string_view field) {
  if (!value.is_string()) return invalid(field, "must be a string, got {}", shown(value));
  return std::string(value.get_string());
}

}  // namespace

Result<json::object> parse_body(std::string_view sent) {
  std::string converted;
  TRY(const std::string_view body, utf8_json(sent, converted));
  boost::system::error_code error;
  std::size_t taken = 0;
  json::value value = parse_exact_json(body, error, taken);
  if (error == json::error::too_deep)
    return failure(ErrorCode::invalid_argument, "the body is nested deeper than {} levels", kJsonDepthMax);
  if (error) {
    const std::string problem = json_problem(body, taken);
    return failure(ErrorCode::invalid_argument, "the body is not valid JSON near byte {}: {}", taken,
                   problem.empty() ? error.message() : problem);
  }
  if (body.find_first_not_of(" \t\r\n", taken) != std::string_view::npos)
    return failure(ErrorCode::invalid_argument, "the body is not valid JSON near byte {}: extra data", taken);
  if (!value.is_object()) return failure(ErrorCode::invalid_argument, "the body must be a JSON object");
  return std::move(value.get_object());
}

Result<std::int64_t> integer_in(const json::value& value, std::string_view field, std::int64_t min,
                                std::int64_t max) {
  const auto refused = [&](bool whole) {
    if (!whole) return invalid(field, "must be a whole number, got {}", shown(value));
    return invalid(field, "must be in [{}, {}], got {}", min, max, shown(value));
  };
  std::int64_t number = 0;
  if (value.is_string()) {
    const json::string& text = value.get_string();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc::result_out_of_range) return refused(true);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return refused(false);
  } else if (value.is_int64()) {
    number = value.get_int64();
  } else if (const auto rounded = rounded_number(value); rounded && std::trunc(*rounded) == *rounded) {
    if (std::abs(*rounded) > 0x1p53) return refused(true);
    number = static_cast<std::int64_t>(*rounded);
  } else {
    return refused(false);
  }
  if (number < min || number > max) return refused(true);
  return number;
}

const json::value* Fields::any(std::string_view name) {
  const auto found = object_->find(name);
  if (found == object_->end()) return nullptr;
  read_.insert(found->key());
  return found->value().is_null() ? nullptr : &found->value();
}

Result<> Fields::boolean(std::string_view name, bool& out) {
  const json::value* value = any(name);
  if (!value) return {};
  if (!value->is_bool()) return invalid(full_name(name), "must be true or false, got {}", shown(*value));
  out = value->get_bool();
  return {};
}

Result<> Fields::number(std::string_view name, double& out) {
  const json::value* value = any(name);
  if (!value) return {};
  double number = 0;
  if (value->is_string()) {
    const json::string& text = value->get_string();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size())
      return invalid(full_name(name), "must be a number, got {}", shown(*value));
  } else if (const auto rounded = rounded_number(*value)) {
    number = *rounded;
  } else {
    return invalid(full_name(name), "must be a number, got {}", shown(*value));
  }
  if (!std::isfinite(number))
    return invalid(full_name(name), "must be a finite number, got {}", shown(*value));
  out = number;
  return {};
}

Result<> Fields::integer(std::string_view name, int& out, int min, int max) {
  const json::value* value = any(name);
  if (!value) return {};
  TRY(const std::int64_t number, integer_in(*value, full_name(name), min, max));
  out = static_cast<int>(number);
  return {};
}

Result<> Fields::integer(std::string_view name, std::optional<int>& out, int min, int max) {
  if (!any(name)) return {};
  return integer(name, out.emplace(), min, max);
}

Result<> Fields::integer64(std::string_view name, std::int64_t& out) {
  const json::value* value = any(name);
  if (!value) return {};
  TRY(out, integer_in(*value, full_name(name), std::numeric_limits<std::int64_t>::min(),
                      std::numeric_limits<std::int64_t>::max()));
  return {};
}

Result<> Fields::integer64(std::string_view name, std::optional<std::int64_t>& out) {
  if (!any(name)) return {};
  return integer64(name, out.emplace());
}

Result<> Fields::text(std::string_view name, std::string& out) {
  const json::value* value = any(name);
  if (!value) return {};
  TRY(out, text_of(*value, full_name(name)));
  return {};
}

Result<> Fields::integers(std::string_view name, std::vector<std::int32_t>& out) {
  TRY(const json::array* items, array(name));
  if (!items) return {};
  out.clear();
  out.reserve(items->size());
  for (const json::value& item : *items) {
    TRY(const std::int64_t id, integer_in(item, full_name(name), std::numeric_limits<std::int32_t>::min(),
                                          std::numeric_limits<std::int32_t>::max()));
    out.push_back(static_cast<std::int32_t>(id));
  }
  return {};
}

Result<> Fields::texts(std::string_view name, std::vector<std::string>& out) {
  TRY(const json::array* items, array(name));
  if (!items) return {};
  out.clear();
  for (const json::value& item : *items) {
    TRY(std::string text, text_of(item, full_name(name)));
    out.push_back(std::move(text));
  }
  return {};
}

Result<> Fields::one_or_more_texts(std::string_view name, std::vector<std::string>& out) {
  const json::value* value = any(name);
  if (value && value->is_string()) {
    out = {std::string(value->get_string())};
    return {};
  }
  if (value && !value->is_array())
    return invalid(full_name(name), "must be a string or a list of strings, got {}", shown(*value));
  return texts(name, out);
}

Result<const json::object*> Fields::object(std::string_view name) {
  const json::value* value = any(name);
  if (value && (!value->is_object() || long_number(*value)))
    return invalid(full_name(name), "must be an object, got {}", shown(*value));
  return value ? &value->get_object() : nullptr;
}

Result<const json::array*> Fields::array(std::string_view name) {
  const json::value* value = any(name);
  if (value && !value->is_array()) return invalid(full_name(name), "must be an array, got {}", shown(*value));
  return value ? &value->get_array() : nullptr;
}

void Fields::accept(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) (void)any(name);
}

Result<> Fields::refuse(std::string_view name, std::string_view reason, const json::value& harmless) {
  const json::value* value = any(name);
  if (!value || *value == harmless) return {};
  return invalid(full_name(name), "{}", reason);
}

std::vector<std::string> Fields::unread() const {
  std::vector<std::string> names;
  for (const auto& field : *object_)
    if (!read_.contains(field.key())) names.push_back(full_name(field.key()));
  return names;
}

}  // namespace octavo::openai
