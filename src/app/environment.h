// Reads environment variables. Only src/app does this.
#pragma once

#include <cstdlib>
#include <string>

namespace octavo {

// The value of a variable; "": not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace octavo
