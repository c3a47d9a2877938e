// Reads typed fields of options whose value is a JSON object, such as vLLM's --kv-events-config.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

inline Result<> read_field(const boost::json::value& value, std::string_view field, std::string& out) {
  if (!value.is_string()) return invalid(field, "must be a string");
  out = value.get_string();
  return {};
}

inline Result<> read_field(const boost::json::value& value, std::string_view field, bool& out) {
  if (!value.is_bool()) return invalid(field, "must be true or false");
  out = value.get_bool();
  return {};
}

template <class Integer>
Result<> read_field(const boost::json::value& value, std::string_view field, Integer min, Integer max,
                    Integer& out) {
  boost::system::error_code not_integer;
  const auto number = value.to_number<Integer>(not_integer);
  if (not_integer || number < min || number > max)
    return invalid(field, "must be an integer in [{}, {}]", min, max);
  out = number;
  return {};
}

}  // namespace octavo
