// Quotes untrusted text for errors and logs.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// Returns the text in double quotes; quotes, backslashes, control characters and invalid UTF-8 are escaped.
// fmt's {:?} cannot be used, because it aborts on invalid UTF-8 (fmt 9.1).
std::string quoted_text(std::string_view text);

}  // namespace octavo
