// Base64 (RFC 4648).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// With padding.
std::string encode_base64(std::string_view bytes);

// Padding may be left out. Errors: a character that is not of the alphabet, a length that no bytes have.
Result<std::string> decode_base64(std::string_view text);

}  // namespace octavo
