#include "app/models_file.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <filesystem>
#include <set>

#include "app/config_file.h"
#include "hub/selection.h"
#include "yaml/yaml.h"

namespace octavo {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::string_view kField = "models";

Result<> read_switch(const json::value& value, std::string_view name, bool& out) {
  if (!value.is_bool()) return invalid(kField, "{} must be true or false", name);
  out = value.get_bool();
  return {};
}

Result<> read_seconds(const json::value& value, std::string_view name, int& out) {
  constexpr std::int64_t kMost = 31'536'000;
  if (!value.is_int64() || value.get_int64() < 0 || value.get_int64() > kMost)
    return invalid(kField, "{} must be a number of seconds from 0 to {}", name, kMost);
  out = static_cast<int>(value.get_int64());
  return {};
}

Result<ListedModel> read_model(const json::value& value, std::size_t number) {
  if (!value.is_object()) return invalid(kField, "model {} of the list must be a mapping of flags", number);
  ListedModel model;
  json::object flags;
  for (const auto& [key, item] : value.get_object()) {
    std::string name = key;
    std::ranges::replace(name, '_', '-');
    if (name == "pinned") {
      TRY_VOID(read_switch(item, name, model.pinned));
    } else if (name == "preload") {
      TRY_VOID(read_switch(item, name, model.preload));
    } else if (name == "min-idle") {
      TRY_VOID(read_seconds(item, name, model.min_idle_s));
    } else if (name == "idle-timeout") {
      TRY_VOID(read_seconds(item, name, model.idle_timeout_s));
    } else {
      flags[name] = item;
    }
  }
  if (const json::value* named = flags.if_contains("model"); !named || !named->is_string())
    return invalid(kField, "model {} of the list must have the key `model`: a path or a name", number);
  for (const ConfigEntry& entry : config_entries(flags))
    std::ranges::move(arguments_of(entry), std::back_inserter(model.flags));
  return model;
}

// Returns whether the file is a part of a split GGUF file, but not its first part.
bool is_later_part(const std::string& name) {
  const std::size_t of = name.rfind("-of-");
  return of != std::string::npos && of >= 5 && name.substr(of - 5, 5) != "00001";
}

Result<std::vector<ListedModel>> read_folder(const std::string& path) {
  std::set<std::string> found;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(path, failed)) {
    const fs::path file = entry.path();
    const bool gguf = file.extension() == ".gguf" && !is_later_part(file.stem()) &&
                      !hub::is_mmproj(file.filename().string());
    if (fs::exists(file / "config.json") || gguf) found.insert(file);
  }
  if (failed) return invalid(kField, "cannot read the folder {}: {}", path, failed.message());
  if (found.empty())
    return invalid(kField, "the folder {} has no models: neither subfolders with a config.json nor *.gguf",
                   path);
  std::vector<ListedModel> models;
  for (const std::string& file : found) {
    ListedModel model = listed_model(file);
    model.flags.push_back(
        "--served-model-name=" +
        (fs::is_directory(file) ? fs::path(file).filename() : fs::path(file).stem()).string());
    models.push_back(std::move(model));
  }
  return models;
}

}  // namespace

ListedModel listed_model(const std::string& name) { return {.flags = {"--model=" + name}}; }

Result<std::vector<ListedModel>> read_models(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return read_folder(path);
  TRY(const json::value file, read_yaml_file(path, kField));
  const json::value* list = file.is_object() ? file.get_object().if_contains(kField) : nullptr;
  if (!list || !list->is_array() || list->get_array().empty())
    return invalid(kField, "{} must have a list `models` with at least one model", path);
  if (file.get_object().size() > 1)
    return invalid(
        kField, "{} must have no other key than `models`: set flags of the server on the command line", path);
  std::vector<ListedModel> models;
  for (const json::value& value : list->get_array()) {
    TRY(models.emplace_back(), read_model(value, models.size() + 1));
  }
  return models;
}

}  // namespace octavo
