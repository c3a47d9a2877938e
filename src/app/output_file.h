// Writes the result files of commands.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Creates or replaces the file. Does nothing if the path is empty. field: flag with the path. Returns io on
// failure.
Result<> write_output(std::string_view field, const std::string& path, std::string_view text);

}  // namespace octavo
