// JSON pointers (RFC 6901) as fragments of a URI, such as #/properties/a.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/json_value.h"

namespace octavo::grammar {

std::string escaped_pointer(std::string_view key);

// Returns the pointer to a value of the document, which its offset identifies. Shortens long pointers.
std::string pointer_to(const Json& document, const Json& value);

// Returns the value at a pointer without '#', or null if the document has no such value.
const Json* at_pointer(const Json& document, std::string_view pointer);

// Returns nullopt for an invalid escape.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace octavo::grammar
