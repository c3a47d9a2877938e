// Text that anybody may have sent, as it is shown in errors and logs.
#pragma once

#include <string>
#include <string_view>

namespace octavo {

// The text between double quotes; quotes, backslashes, control characters and bytes that are no UTF-8 are
// escaped. In place of fmt's {:?}, which ends the process over such bytes (fmt 9.1).
std::string quoted_text(std::string_view text);

}  // namespace octavo
