// Provides a model or a LoRA adapter of the hub on disk: from the cache, or by download.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/error.h"
#include "hub/model_name.h"
#include "hub/settings.h"

namespace octavo::hub {

// Progress of a download; called from several threads.
struct Watcher {
  std::function<void(std::uint64_t done, std::uint64_t all)> bytes;
  std::function<void(const std::string& file, std::uint64_t size)> file;  // the file is complete
};

// Returns the folder or GGUF file to load. Looks up the revision's commit on the hub, unless it is a commit
// in the cache or `settings` say offline, and downloads missing files. If the hub is unreachable, uses the
// cache. Errors name the remedy.
Result<std::filesystem::path> pull(const ModelName& name, const Settings& settings, const Watcher& watcher);
// Returns the folder of a LoRA adapter.
Result<std::filesystem::path> pull_adapter(const ModelName& name, const Settings& settings,
                                           const Watcher& watcher);

}  // namespace octavo::hub
