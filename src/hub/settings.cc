#include "hub/settings.h"

#include <algorithm>
#include <cctype>

#include "hub/files.h"

namespace octavo::hub {
namespace {

namespace fs = std::filesystem;

bool is_true(std::string value) {
  std::ranges::transform(value, value.begin(), [](unsigned char c) { return std::toupper(c); });
  return value == "1" || value == "ON" || value == "YES" || value == "TRUE";
}

// The folder in the first variable that is set; expands "~".
fs::path folder(const Environment& environment, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string value = environment(name);
    if (value.starts_with("~/")) return fs::path(environment("HOME")) / value.substr(2);
    if (!value.empty()) return value;
  }
  return {};
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
  return settings;
}

}  // namespace octavo::hub
