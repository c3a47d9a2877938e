// Encodings of JSON texts. Python's json module detects UTF-8, UTF-16 and UTF-32 by a byte order mark or by
// the zero bytes of the first two characters, and so do servers that use it.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// The text in UTF-8, without a byte order mark: a view of the text itself, or of `converted`. Surrogates
// without a partner become U+FFFD. Errors: invalid_argument, for a text that ends within a character or has
// a value beyond U+10FFFF.
Result<std::string_view> utf8_json(std::string_view text, std::string& converted);

}  // namespace octavo
