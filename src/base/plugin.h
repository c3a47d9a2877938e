// Shared libraries that are loaded on first use, because they need libraries that few machines have.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// Returns a function of such a library. Searches only beside the program and where it is installed, because
// other folders may be writable by others. for_all: libraries that it loads see its symbols. Errors:
// unsupported if the library is missing or cannot be loaded; corrupt if it lacks the function.
Result<void*> plugin_function(const std::string& library, const char* function, bool for_all = false);

}  // namespace octavo
