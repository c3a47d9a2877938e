// Reads the file of --config.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

// name: such as "max-model-len". values: as on the command line; "true" or "false" for switches, JSON for
// nested entries.
struct ConfigEntry {
  std::string name;
  std::vector<std::string> values;
  bool is_switch = false;
};

// Returns an error on "config" if the file cannot be read, is not YAML, or is not a map.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

}  // namespace octavo
