// Bodies of type multipart/form-data (RFC 7578).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace octavo::http {

struct FormPart {
  std::string name;
  std::optional<std::string> filename;  // of a file
  std::string_view data;                // into the body
};

// The parts of a body, in their order. content_type: the request's header. Errors (invalid_argument): it is
// of another type, has no boundary, more than kFormPartsMax parts, a part without a name, or ends early.
inline constexpr std::size_t kFormPartsMax = 128;
Result<std::vector<FormPart>> parse_form(std::string_view content_type, std::string_view body);

}  // namespace octavo::http
