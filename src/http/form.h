// Parses bodies of type multipart/form-data (RFC 7578).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::http {

struct FormPart {
  std::string name;
  // set if the part is a file
  std::optional<std::string> filename;
  std::string_view data;
};

// Returns the parts in order. content_type: header of the request. Returns invalid_argument for another
// content type, no boundary, more than kFormPartsMax parts, a part without a name, or an incomplete body.
inline constexpr std::size_t kFormPartsMax = 128;
Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body);

}  // namespace octavo::http
