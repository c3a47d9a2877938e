// Finds the model that a user names: a folder, a GGUF file, or a name on the Hugging Face Hub. Without a
// name it is the demo model.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"
#include "hub/settings.h"

namespace octavo {

// Options for downloads from the Hub.
struct HubFlags {
  hub::Environment environment;  // default values of the flags; must be set
  std::string revision;
  std::string download_dir;
  std::optional<std::string> token;
};

// Adds --revision, --download-dir and --hf-token. Parsing fills `flags`, which must outlive the subcommand.
void add_hub_flags(CLI::App& command, HubFlags& flags, hub::Environment environment);
// Adds only --download-dir.
void add_cache_flag(CLI::App& command, HubFlags& flags, hub::Environment environment);

// Folder that contains downloaded models.
std::filesystem::path cache_dir(const HubFlags& flags);

// Returns the path to load. If `given` is not a path, it is a Hub name: the model is taken from the cache,
// or downloaded into it. The download shows a progress bar on a terminal; otherwise it logs one line per
// file. Errors: field "model", and those of hub::pull.
Result<std::string> find_model(const std::string& given, const HubFlags& flags);
// Replaces the names of the model and of its draft model by paths. The flags that choose a revision apply
// only to the model.
Result<> find_models(EngineOptions& options, const HubFlags& flags);
// Returns the folder of a LoRA adapter, found like a model. A path that does not exist and cannot be a Hub
// name is returned unchanged. Any thread.
Result<std::string> find_adapter(const std::string& given, const HubFlags& flags);
// Does the same as find_model(), but only for Hub names.
Result<std::string> find_on_hub(const std::string& name, const HubFlags& flags);

}  // namespace octavo
