// Files for the results of commands.
#pragma once

#include <string>
#include <string_view>

#include "base/error.h"

namespace octavo {

// Replaces the file by the text. Does nothing if the path is empty. Error: io; field: the flag of the path.
Result<> write_output(std::string_view field, const std::string& path, std::string_view text);

}  // namespace octavo
