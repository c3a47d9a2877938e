// Finds the model that a user names: a folder, a GGUF file, or a name on the Hugging Face Hub. The default
// is the demo model.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"
#include "hub/settings.h"

namespace octavo {

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

std::filesystem::path cache_dir(const HubFlags& flags);

// Returns the path to load. If `given` is not a path, it is a Hub name, and the model is loaded from the
// cache or downloaded. On a terminal a download shows a progress bar; otherwise it logs one line per file.
// Errors: field "model", and those of hub::pull.
Result<std::string> find_model(const std::string& given, const HubFlags& flags);
// Replaces the names of the model and of its draft model by paths. The flags for the revision apply only to
// the model.
Result<> find_models(EngineOptions& options, const HubFlags& flags);
// Returns the folder of a LoRA adapter, which it finds like a model. Returns `given` if it is a missing
// path that cannot be a Hub name. May be called from any thread.
Result<std::string> find_adapter(const std::string& given, const HubFlags& flags);
// Acts like find_model(), but accepts only Hub names.
Result<std::string> find_on_hub(const std::string& name, const HubFlags& flags);

}  // namespace octavo
