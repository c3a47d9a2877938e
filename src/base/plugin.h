// Loads optional shared libraries at first use, because they depend on libraries that few machines have.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// Searches only the folders of the program and of the installation, because other users may be able to
// write to other folders. for_all: libraries that are loaded later see its symbols. Returns unsupported if
// the library is missing or cannot be loaded, or corrupt if it does not have the function.
Result<void*> plugin_function(const std::string& library, const char* function, bool for_all = false);

}  // namespace octavo
