// Reads strings in the JSON objects of a Kubernetes API server.
#pragma once

#include <boost/json/value.hpp>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns the string at a JSON pointer such as "/metadata/name". Returns "" if there is no string.
inline std::string text_at(const boost::json::value& value, std::string_view pointer) {
  boost::system::error_code error;
  const boost::json::value* found = value.find_pointer(pointer, error);
  return found && found->is_string() ? std::string(found->get_string()) : std::string();
}

}  // namespace octavo::fleet
