// Finds the model that a user names: a folder, a GGUF file, or a name on the Hugging Face Hub. By default
// it is the demo model.
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
  // reads environment variables, which have the default values of the flags; must not be empty
  hub::Environment environment;
  std::string revision;
  std::string download_dir;
  std::optional<std::string> token;
};

// Adds --revision, --download-dir and --hf-token. Parsing fills `flags`, which must outlive the subcommand.
void add_hub_flags(CLI::App& command, HubFlags& flags, hub::Environment environment);
void add_cache_flag(CLI::App& command, HubFlags& flags, hub::Environment environment);

std::filesystem::path cache_dir(const HubFlags& flags);

// Returns the path to load. If `given` is not a path, it is a name on the hub; the model is then in the
// cache or downloaded, with a progress bar on a terminal. Returns an error on "model", or an error of
// hub::pull.
Result<std::string> find_model(const std::string& given, const HubFlags& flags);
// Replaces the names of the model and the draft model by paths, and finds the model's mmproj file. The flags
// for a revision only apply to the model.
Result<> find_models(EngineOptions& options, const HubFlags& flags);
// Does the same as find_model(), for the folder of a LoRA adapter. If `given` is a missing path that cannot
// be a name on the hub, returns it unchanged. Any thread may call it.
Result<std::string> find_adapter(const std::string& given, const HubFlags& flags);
// Does the same as find_model(), but only for names on the hub.
Result<std::string> find_on_hub(const std::string& name, const HubFlags& flags);

}  // namespace octavo
