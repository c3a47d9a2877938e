// Parts of the program that need libraries which few machines have: libraries of their own, loaded when they are used.
#pragma once

#include <string>

#include "base/error.h"

namespace octavo {

// A function of such a library, which is looked for beside the program and where it is installed, and nowhere that others
// may write to. for_all: what the library loads itself finds its symbols. Errors: unsupported, it is nowhere
// or cannot be loaded; corrupt, it has no such function.
Result<void*> plugin_function(const std::string& library, const char* function, bool for_all = false);

}  // namespace octavo
