// Bodies of requests, read and added to by those who stand between a client and its replica.
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

// The text of an object with one field more, at its front; all else stays byte for byte. value: JSON.
std::string with_field(std::string_view object, std::string_view name, std::string_view value);

}  // namespace octavo::fleet
