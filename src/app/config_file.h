// Reads --config file.yaml.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace octavo {

// An entry of the file: a name such as "max-model-len", and its values as on the command line (switches:
// "true" or "false"; nested entries: JSON).
struct ConfigEntry {
  std::string name;
  std::vector<std::string> values;
  bool is_switch = false;
};

// Errors: the file cannot be read (field "config"), is not YAML, or is not a map.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

}  // namespace octavo
