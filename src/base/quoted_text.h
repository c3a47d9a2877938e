// Quotes untrusted text for errors and logs.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// The text in double quotes. Quotes, backslashes, control characters and invalid UTF-8 are escaped. It
// replaces fmt's {:?}, which aborts on invalid UTF-8 (fmt 9.1).
std::string quoted_text(std::string_view text);

}  // namespace octavo
