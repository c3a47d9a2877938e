// The command-line flags of a model and its engine, with the names of `vllm serve`. All subcommands that
// run an engine share them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Hidden flag for EngineOptions::index, for the engine processes of one server.
inline constexpr const char* kEngineIndexFlag = "--engine-index";
// Hidden flag for DeviceOptions::processors, for the same processes.
inline constexpr const char* kProcessorsFlag = "--processors";

// Hidden flag for NodeOptions::expert_port, for engines that share experts.
inline constexpr const char* kExpertPortFlag = "--expert-port";
// Hidden flag for EngineOptions::weights_dir, for an engine that starts with other weights.
inline constexpr const char* kWeightsFlag = "--weights-dir";

inline constexpr const char* kKvTransferFlag = "--kv-transfer-config";
// Hidden flag: the process runs an engine for its parent.
inline constexpr const char* kRunEngineFlag = "--run-engine";
// Hidden flag, with kRunEngineFlag: the process runs a rank of this engine.
inline constexpr const char* kRunRankFlag = "--run-rank";

// Adds the flags to a subcommand. Parsing fills `options`, which must outlive the subcommand.
void add_engine_flags(CLI::App& command, EngineOptions& options);

// Returns the folder of the model that is part of Octavo. It searches for models/demo or
// share/octavo/models/demo beside the program or shared library, in their parent folders, and in the source
// tree of the build. Errors: no such folder exists.
Result<std::string> demo_model_dir();

// Returns the path of the program `octavo`: this program, or octavo or bin/octavo beside the library or in
// a parent folder. Errors: no such file exists.
Result<std::string> octavo_program();

}  // namespace octavo
