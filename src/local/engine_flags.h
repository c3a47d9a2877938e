// The command-line flags that choose a model and an engine. All subcommands that run an engine share them.
// The names are those of `vllm serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Hidden flag for EngineOptions::index, used by the processes of several engines of one server.
inline constexpr const char* kEngineIndexFlag = "--engine-index";
// Hidden flag for DeviceOptions::processors, used by the same processes.
inline constexpr const char* kProcessorsFlag = "--processors";

// Hidden flag for NodeOptions::expert_port, used by engines that share experts.
inline constexpr const char* kExpertPortFlag = "--expert-port";
// Hidden flag for EngineOptions::weights_dir, used by an engine that is started with other weights.
inline constexpr const char* kWeightsFlag = "--weights-dir";

inline constexpr const char* kKvTransferFlag = "--kv-transfer-config";
// Hidden flag: the process runs an engine for its parent.
inline constexpr const char* kRunEngineFlag = "--run-engine";
// Hidden flag, in addition to kRunEngineFlag: the process runs a rank of this engine.
inline constexpr const char* kRunRankFlag = "--run-rank";

// Adds the flags to a subcommand. Parsing fills `options`, which must outlive the subcommand.
void add_engine_flags(CLI::App& command, EngineOptions& options);

// Returns the folder of the model that is shipped with Octavo: models/demo or share/octavo/models/demo,
// beside the program or shared library, in a parent folder, or in the source tree of the build. Returns an
// error if none of these folders exists.
Result<std::string> demo_model_dir();

// Returns the path of the program `octavo`: this program itself, or octavo or bin/octavo beside the library
// or in a parent folder. Returns an error if none of these files exists.
Result<std::string> octavo_program();

}  // namespace octavo
