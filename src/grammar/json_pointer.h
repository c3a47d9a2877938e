// JSON pointers (RFC 6901) as fragments of a URI: #/properties/a.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/json_value.h"

namespace octavo::grammar {

std::string escaped_pointer(std::string_view key);

// The pointer to a value of the document, which is identified by its offset. Long pointers are cut.
std::string pointer_to(const Json& document, const Json& value);

// The value at a pointer without '#'; nullptr if the document has no such value.
const Json* at_pointer(const Json& document, std::string_view pointer);

// nullopt: invalid escape.
std::optional<std::string> percent_decoded(std::string_view text);

}  // namespace octavo::grammar
