// The program's environment variables; nothing below src/app reads them.
#pragma once

#include <cstdlib>
#include <string>

namespace octavo {

// The value of a variable, "" when it is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace octavo
