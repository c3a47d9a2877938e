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
  hub::Environment environment;  // for what the flags leave open; must be set
  std::string revision;
  std::string download_dir;
  std::optional<std::string> token;
};

// Adds --revision, --download-dir and --hf-token; parsing fills `flags`, which must outlive the subcommand.
void add_hub_flags(CLI::App& command, HubFlags& flags, hub::Environment environment);
// Adds --download-dir alone.
void add_cache_flag(CLI::App& command, HubFlags& flags, hub::Environment environment);

// Where models of the hub are kept.
std::filesystem::path cache_dir(const HubFlags& flags);

// The path to load. What is no path is looked for in the cache of the hub, and downloaded into it, with a
// progress bar when someone watches and a line a file when not. Errors: field "model", and those of
// hub::pull.
Result<std::string> find_model(const std::string& given, const HubFlags& flags);
// Puts the paths of the model and of its draft model, where it has one, in the place of their names. Flags
// that choose a revision are about the model alone.
Result<> find_models(EngineOptions& options, const HubFlags& flags);
// The folder of a LoRA adapter, likewise; what neither is there nor can be a name of the hub stays as it is
// given. Any thread.
Result<std::string> find_adapter(const std::string& given, const HubFlags& flags);
// find_model for names of the hub alone.
Result<std::string> find_on_hub(const std::string& name, const HubFlags& flags);

}  // namespace octavo
