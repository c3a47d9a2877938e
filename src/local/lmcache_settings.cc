#include "local/lmcache_settings.h"

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cctype>

#include "base/log.h"
#include "yaml/yaml.h"

namespace octavo {
namespace {

namespace json = boost::json;

constexpr std::string_view kConnectors[] = {"LMCacheConnectorV1", "LMCacheConnector"};
// Settings in LMCache's configuration file that have an effect in Octavo.
constexpr std::string_view kSettings[] = {"cache_policy",        "chunk_size", "extra_config",
                                          "local_cpu",           "local_disk", "max_local_cpu_size",
                                          "max_local_disk_size", "remote_url"};
constexpr const char* kFile = "LMCACHE_CONFIG_FILE";

bool is_lmcache(const json::object& config) {
  const json::value* name = config.if_contains("kv_connector");
  return name != nullptr && name->is_string() &&
         std::ranges::find(kConnectors, std::string_view(name->get_string())) != std::end(kConnectors);
}

json::value value_of(const std::string& text) {
  boost::system::error_code not_json;
  json::value value = json::parse(text, not_json);
  if (!not_json) return value;
  if (text == "True" || text == "False") return text == "True";
  return json::value(text);
}

Result<json::object> settings(const hub::Environment& environment) {
  json::object out;
  if (const std::string path = environment(kFile); !path.empty()) {
    TRY(const json::value file, read_yaml_file(path, kFile));
    if (!file.is_object() && !file.is_null())
      return invalid(kFile, "{} must be a YAML mapping of names", path);
    for (const auto& [name, value] : file.is_null() ? json::object() : file.get_object()) {
      if (std::ranges::find(kSettings, std::string_view(name)) != std::end(kSettings))
        out[name] = value;
      else if (!value.is_null())
        log_info("{}: {} has no effect", path, std::string_view(name));
    }
  }
  for (const std::string_view name : kSettings) {
    std::string variable = "LMCACHE_";
    std::ranges::transform(name, std::back_inserter(variable),
                           [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    if (const std::string text = environment(variable.c_str()); !text.empty()) out[name] = value_of(text);
  }
  return out;
}

void add(const json::object& found, json::object& config) {
  if (is_lmcache(config)) {
    json::value& extra = config["kv_connector_extra_config"];
    if (extra.is_null()) extra.emplace_object();
    if (!extra.is_object()) return;  // Not an object: the parser of the flag reports the error later.
    for (const auto& [name, value] : found)
      // Adds a setting only if the flag does not have it, because the flag has priority.
      extra.get_object().emplace("lmcache." + std::string(name), value);
    return;
  }
  json::value* extra = config.if_contains("kv_connector_extra_config");
  json::value* list = extra && extra->is_object() ? extra->get_object().if_contains("connectors") : nullptr;
  if (list == nullptr || !list->is_array()) return;
  for (json::value& each : list->get_array())
    if (each.is_object()) add(found, each.get_object());
}

}  // namespace

Result<std::string> with_lmcache_settings(const std::string& kv_transfer_config,
                                          const hub::Environment& environment) {
  if (kv_transfer_config.find("LMCacheConnector") == std::string::npos) return kv_transfer_config;
  boost::system::error_code not_json;
  json::value config = json::parse(kv_transfer_config, not_json);
  if (not_json || !config.is_object()) return kv_transfer_config;
  TRY(const json::object found, settings(environment));
  add(found, config.get_object());
  return json::serialize(config);
}

}  // namespace octavo
