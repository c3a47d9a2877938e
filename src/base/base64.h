// Base64 (RFC 4648).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Returns the encoded bytes, with padding.
std::string encode_base64(std::string_view bytes);

// Decodes a text; padding is optional. Returns an error if a character is outside of the alphabet, or if the
// length is impossible.
Result<std::string> decode_base64(std::string_view text);

}  // namespace octavo
