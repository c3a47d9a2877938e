// JSON pointers (RFC 6901) in URI fragments, such as #/properties/a.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/json_value.h"

namespace octavo::grammar {

std::string escaped_pointer(std::string_view key);

// Returns the pointer to a value of the document. Finds the value by Json::offset. Shortens long pointers.
std::string pointer_to(const Json& document, const Json& value);

// pointer: without '#'. Returns null if the document has no such value.
const Json* at_pointer(const Json& document, std::string_view pointer);

// Returns nullopt for an invalid escape.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace octavo::grammar
