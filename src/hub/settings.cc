#include "hub/settings.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string_view>
#include <vector>

#include "hub/files.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

bool is_true(std::string value) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// Returns the value of the first variable that is set, with "~" expanded.
fs::path folder(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string value = environment(name);
    if (value.starts_with("~/")) return fs::path(environment("HOME")) / value.substr(2);
    if (!value.empty()) return value;
  }
  return {};
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t\r"), text.size());
  return text.substr(begin, text.find_last_not_of(" \t\r") + 1 - begin);
}

// Returns index-url in a pip.conf, or "".
std::string index_url_in(const fs::path& file) {
  std::ifstream in(file);
  std::string url;
  bool global = false;
  for (std::string line; std::getline(in, line);) {
    const std::string_view text = trimmed(line);
    const std::size_t equals = text.find_first_of("=:");
    if (text.starts_with('['))
      global = text == "[global]";
    else if (global && equals != std::string_view::npos && trimmed(text.substr(0, equals)) == "index-url")
      url = trimmed(text.substr(equals + 1));
  }
  return url;
}

// Returns pip's configuration files, highest priority first.
std::vector<fs::path> pip_files(const Environment& environment) {
  const std::string file = environment("PIP_CONFIG_FILE");
  if (file == "/dev/null") return {};  // with this value, pip reads no configuration file
  fs::path config = folder(environment, {"XDG_CONFIG_HOME"});
  const fs::path home = environment("HOME");
  if (config.empty()) config = home / ".config";
  std::vector<fs::path> files = {config / "pip/pip.conf", home / ".pip/pip.conf", "/etc/pip.conf"};
  if (!file.empty()) files.insert(files.begin(), file);
  return files;
}

}  // namespace

Settings settings_of(const Environment& environment) {
  Settings settings;
  fs::path caches = folder(environment, {"XDG_CACHE_HOME"});
  if (caches.empty()) caches = fs::path(environment("HOME")) / ".cache";
  fs::path home = folder(environment, {"HF_HOME"});
  if (home.empty()) home = caches / "huggingface";
  settings.cache_dir = folder(environment, {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
  if (settings.cache_dir.empty()) settings.cache_dir = home / "hub";

  if (const std::string endpoint = environment("HF_ENDPOINT"); !endpoint.empty())
    settings.endpoint = endpoint;
  while (settings.endpoint.ends_with('/')) settings.endpoint.pop_back();

  settings.token = environment("HF_TOKEN");
  if (settings.token.empty()) settings.token = environment("HUGGING_FACE_HUB_TOKEN");
  if (settings.token.empty()) {
    const fs::path file = folder(environment, {"HF_TOKEN_PATH"});
    settings.token = read_word(file.empty() ? home / "token" : file);
  }
  settings.offline = is_true(environment("HF_HUB_OFFLINE")) || is_true(environment("TRANSFORMERS_OFFLINE"));

  std::string index = environment("PIP_INDEX_URL");
  for (const fs::path& file : pip_files(environment))
    if (index.empty()) index = index_url_in(file);
  if (!index.empty()) settings.package_index = index;
  return settings;
}

}  // namespace octavo::hub
