#pragma once

#include <filesystem>

#include "base/error.h"
#include "hub/model_name.h"
#include "hub/settings.h"
#include "hub/watcher.h"

namespace octavo::hub {

// Returns the folder or GGUF file to load. Requests the commit of the revision from the hub and downloads
// missing files. If the commit is given and cached, or if `settings` say offline, it sends no request. If
// the hub is unreachable, it uses the cache. "demo" is the model of hub/packaged_model.h. Errors say what
// the user can do.
Result<std::filesystem::path> pull(const ModelName& name, const Settings& settings, const Watcher& watcher);
Result<std::filesystem::path> pull_adapter(const ModelName& name, const Settings& settings,
                                           const Watcher& watcher);

}  // namespace octavo::hub
