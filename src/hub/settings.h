// Settings of the hub (address, cache folder, token), from the environment variables of huggingface_hub.
// Settings of the package index, from pip.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace octavo::hub {

struct Settings {
  std::filesystem::path cache_dir;
  std::string endpoint = "https://huggingface.co";
  std::string token;  // "": anonymous
  // whether to use only the cache, without the network
  bool offline = false;
  // may contain "user:password@"
  std::string package_index = "https://pypi.org/simple";
};

// Returns "" for a variable that is not set.
using Environment = std::function<std::string(const char* name)>;

// Reads these environment variables:
// - HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME
// - HF_ENDPOINT
// - HF_TOKEN, HF_TOKEN_PATH; by default, the token that `hf auth login` has stored
// - HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE
// - PIP_INDEX_URL; by default, index-url in pip's configuration files
Settings settings_of(const Environment& environment);

}  // namespace octavo::hub
