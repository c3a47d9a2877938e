#pragma once

#include <filesystem>

#include "base/error.h"
#include "hub/model_name.h"
#include "hub/settings.h"
#include "hub/watcher.h"

namespace octavo::hub {

// Returns the folder or GGUF file to load. Requests the revision's commit from the hub, then downloads
// missing files. Sends no request if the revision is a commit in the cache, or if `settings` say offline.
// Uses the cache if the hub is unreachable. "demo" is the small model of hub/packaged_model.h. Errors name
// the remedy.
Result<std::filesystem::path> pull(const ModelName& name, const Settings& settings, const Watcher& watcher);
// Returns the folder of a LoRA adapter.
Result<std::filesystem::path> pull_adapter(const ModelName& name, const Settings& settings,
                                           const Watcher& watcher);

}  // namespace octavo::hub
