// Shared libraries that are loaded at first use, because they depend on libraries that few machines have.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// Returns a function of such a library. Searches only beside the program and where it is installed, because
// other users may write to other folders. for_all: if true, later loaded libraries see its symbols. Errors:
// unsupported, the library is missing or cannot be loaded; corrupt, it has no such function.
Result<void*> plugin_function(const std::string& library, const char* function, bool for_all = false);

}  // namespace octavo
