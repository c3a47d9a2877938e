// Where the hub is, where its cache is, and who asks: by the environment variables of huggingface_hub.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

namespace octavo::hub {

struct Settings {
  std::filesystem::path cache_dir;
  std::string endpoint = "https://huggingface.co";
  std::string token;     // "": nobody in particular
  bool offline = false;  // ask nobody, take what the cache has
};

// The value of a variable, "" when it is not set.
using Environment = std::function<std::string(const char* name)>;

// HF_HUB_CACHE, HF_HOME, XDG_CACHE_HOME; HF_ENDPOINT; HF_TOKEN, HF_TOKEN_PATH and the token that `hf auth
// login` has stored; HF_HUB_OFFLINE, TRANSFORMERS_OFFLINE.
Settings settings_of(const Environment& environment);

}  // namespace octavo::hub
