#include "app/config_file.h"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "yaml/yaml.h"

namespace octavo {
namespace {

namespace json = boost::json;

std::string as_text(const json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : json::serialize(value);
}

}  // namespace

std::vector<ConfigEntry> config_entries(const json::object& flags) {
  std::vector<ConfigEntry> entries;
  for (const auto& [name, value] : flags) {
    ConfigEntry& entry = entries.emplace_back();
    entry.name = name;
    entry.is_switch = value.is_bool();
    if (value.is_array())
      for (const json::value& item : value.get_array()) entry.values.push_back(as_text(item));
    else if (!value.is_null())
      entry.values.push_back(as_text(value));
    if (entry.values.empty()) entries.pop_back();  // A flag whose value is null is not set.
  }
  return entries;
}

std::vector<std::string> arguments_of(const ConfigEntry& entry) {
  if (entry.is_switch || entry.values.size() == 1) return {"--" + entry.name + "=" + entry.values.front()};
  std::vector<std::string> arguments{"--" + entry.name};
  arguments.insert(arguments.end(), entry.values.begin(), entry.values.end());
  return arguments;
}

Result<std::vector<ConfigEntry>> read_config_file(const std::string& path) {
  TRY(const json::value file, read_yaml_file(path, "config"));
  if (file.is_null()) return {};
  if (!file.is_object())
    return invalid("config", "must be a YAML mapping of flag names to values (example: port: 8000)");
  return config_entries(file.get_object());
}

}  // namespace octavo
