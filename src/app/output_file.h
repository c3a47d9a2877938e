// Result files of commands.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Replaces the file by the text. Does nothing if the path is empty. Errors: io. field: the flag with the
// path.
Result<> write_output(std::string_view field, const std::string& path, std::string_view text);

}  // namespace octavo
