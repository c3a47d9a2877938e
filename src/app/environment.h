// Environment variables. Only src/app reads them.
#pragma once

#include <cstdlib>
#include <string>

namespace octavo {

// Returns "" if the variable is not set.
inline std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace octavo
