// Base64 (RFC 4648).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Adds padding.
std::string encode_base64(std::string_view bytes);

// Padding is optional. Errors: a character outside of the alphabet, an impossible length.
Result<std::string> decode_base64(std::string_view text);

}  // namespace octavo
