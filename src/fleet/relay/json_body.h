// Reads and extends request bodies in proxies between a client and its replica.
#pragma once

#include <boost/json/object.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns nullopt if the text is not a JSON object, or if it has too many values for its size (BodyMemory).
std::optional<boost::json::object> json_object(std::string_view text);

// Several texts, or several lists of tokens.
bool has_several_prompts(const boost::json::object& request);

// The value at the end of a path of names, or null.
const boost::json::value* find_path(const boost::json::object& object,
                                    std::initializer_list<std::string_view> names);

// Adds a field at the front of the object's text; the other bytes do not change. value: JSON.
std::string with_field(std::string_view object, std::string_view name, std::string_view value);

}  // namespace octavo::fleet
