// Detects the encoding of JSON text. Like Python's json module, it detects UTF-8, UTF-16 and UTF-32 by a byte
// order mark, or by bytes with the value 0 in the first two characters.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Returns the text as UTF-8 without a byte order mark: a view of `text` or of `converted`. Surrogates
// without a partner become U+FFFD. Returns invalid_argument if the text ends inside a character or has a
// value above U+10FFFF.
Result<std::string_view> utf8_json(std::string_view text, std::string& converted);

}  // namespace octavo
