// Base64 (RFC 4648) as it stands in data URLs.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo::media {

// Padding may be left out. Errors: a character that is not of the alphabet, a length that no bytes have.
Result<std::string> decode_base64(std::string_view text);

}  // namespace octavo::media
