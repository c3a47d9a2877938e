// Settings of the hub: its address, the cache's folder and the token, from huggingface_hub's environment
// variables. Also the package index, which is found as pip finds it.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace octavo::hub {

struct Settings {
  std::filesystem::path cache_dir;
  std::string endpoint = "https://huggingface.co";
  std::string token;     // "": anonymous
  bool offline = false;  // whether only the cache is used, without network
  std::string package_index = "https://pypi.org/simple";  // may contain "user:password@"
};

// The value of a variable, "" if it is not set.
using Environment = std::function<std::string(const char* name)>;

// Reads these variables: HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME; HF_ENDPOINT; HF_TOKEN, HF_TOKEN_PATH and the
// token that `hf auth login` has stored; HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE. PIP_INDEX_URL, or index-url in
// pip's configuration files.
Settings settings_of(const Environment& environment);

}  // namespace octavo::hub
