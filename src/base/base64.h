// Base64 (RFC 4648).
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// The result has padding.
std::string encode_base64(std::string_view bytes);

// Padding is optional, line breaks are skipped. Returns an error for other characters and for wrong lengths.
Result<std::string> decode_base64(std::string_view text);

}  // namespace octavo
