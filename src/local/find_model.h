// A model as a person names it, and where it is on the disk: a folder, a GGUF file, a name of the hub, or
// nothing at all for the demo model.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"
#include "hub/settings.h"

namespace octavo {

// Settings for downloads from the hub.
struct HubFlags {
  hub::Environment environment;  // defaults of the flags; must be set
  std::string revision;
  std::string download_dir;
  std::optional<std::string> token;
};

// Adds --revision, --download-dir and --hf-token; parsing fills `flags`, which must outlive the subcommand.
void add_hub_flags(CLI::App& command, HubFlags& flags, hub::Environment environment);
// Adds only --download-dir.
void add_cache_flag(CLI::App& command, HubFlags& flags, hub::Environment environment);

// Folder of downloaded models.
std::filesystem::path cache_dir(const HubFlags& flags);

// The path to load. What is no path is looked for in the cache of the hub, and downloaded into it, with a
// progress bar when someone watches and a line a file when not. Errors: field "model", and those of
// hub::pull.
Result<std::string> find_model(const std::string& given, const HubFlags& flags);
// Replaces the names of the model and of its draft model by their paths. Flags that choose a revision apply
// only to the model.
Result<> find_models(EngineOptions& options, const HubFlags& flags);
// Finds the folder of a LoRA adapter in the same way. A path that does not exist and cannot be a Hub name is
// returned unchanged. Any thread.
Result<std::string> find_adapter(const std::string& given, const HubFlags& flags);
// find_model() for Hub names only.
Result<std::string> find_on_hub(const std::string& name, const HubFlags& flags);

}  // namespace octavo
