// Shared libraries that are loaded at first use, because they depend on libraries that few machines have.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// Returns a function of such a library. It searches only in the program's folder and in the installation
// folder, because other users may write to other folders. for_all: whether libraries that are loaded later
// see its symbols. Returns unsupported if the library is missing or cannot be loaded, or corrupt if it has no
// such function.
Result<void*> plugin_function(const std::string& library, const char* function, bool for_all = false);

}  // namespace octavo
