// Reads JSON request bodies, and adds fields to them.
#pragma once

#include <boost/json/object.hpp>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

namespace octavo::fleet {

// Returns nullopt if the text is not a JSON object, or needs too much memory for its size (see BodyMemory).
std::optional<boost::json::object> json_object(std::string_view text);

// Returns whether the request has several texts, or several lists of token ids.
bool has_several_prompts(const boost::json::object& request);

// Returns null if the path of field names does not exist.
const boost::json::value* find_path(const boost::json::object& object,
                                    std::initializer_list<std::string_view> names);

// Inserts a field at the beginning of a JSON object. All other bytes stay. `value` is JSON.
std::string with_field(std::string_view object, std::string_view name, std::string_view value);

}  // namespace octavo::fleet
