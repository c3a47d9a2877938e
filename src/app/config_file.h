// Reads the file of --config.
#pragma once

#include <boost/json/object.hpp>
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

// Returns the flags of a YAML mapping. Leaves out flags without a value.
std::vector<ConfigEntry> config_entries(const boost::json::object& flags);
// Returns the arguments of a command line with this flag.
std::vector<std::string> arguments_of(const ConfigEntry& entry);

// Returns an error on "config" if the file cannot be read, is not YAML, or is not a map.
Result<std::vector<ConfigEntry>> read_config_file(const std::string& path);

}  // namespace octavo
