// A model or a LoRA adapter of the hub on this disk: from the cache, or downloaded into it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "hub/model_name.h"
#include "hub/settings.h"

namespace octavo::hub {

// How a download goes on; called from several threads at any rate.
struct Watcher {
  std::function<void(std::uint64_t done, std::uint64_t all)> bytes;
  std::function<void(const std::string& file, std::uint64_t size)> file;  // it is there now
};

// The folder to load, or the GGUF file. Asks the hub which commit the revision is at, unless it is a commit
// that is there or `settings` say offline, and fetches what the cache lacks. When the hub cannot be reached,
// what the cache has is taken. Errors name what to do.
Result<std::filesystem::path> pull(const ModelName& name, const Settings& settings, const Watcher& watcher);
// The same of a LoRA adapter: its folder.
Result<std::filesystem::path> pull_adapter(const ModelName& name, const Settings& settings,
                                           const Watcher& watcher);

}  // namespace octavo::hub
