// Flags of a model and its engine, with the names of `vllm serve`. All subcommands that run an engine use
// them.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Hidden flag that a server passes to its engine processes: sets EngineOptions::index.
inline constexpr const char* kEngineIndexFlag = "--engine-index";
// Sets DeviceOptions::processors.
inline constexpr const char* kProcessorsFlag = "--processors";

// Hidden flag: sets NodeOptions::expert_port, for engines that share experts.
inline constexpr const char* kExpertPortFlag = "--expert-port";
// Hidden flag: sets EngineOptions::weights_dir, for an engine that restarts with other weights.
inline constexpr const char* kWeightsFlag = "--weights-dir";
// Hidden flag: sets ModelOptions::late.
inline constexpr const char* kLateFlag = "--late-matrices";

inline constexpr const char* kKvTransferFlag = "--kv-transfer-config";
// Hidden flag: the process runs an engine for its parent process.
inline constexpr const char* kRunEngineFlag = "--run-engine";
// Hidden flag, together with kRunEngineFlag: the process runs this rank of the engine.
inline constexpr const char* kRunRankFlag = "--run-rank";

// Parsing fills `options`, which must outlive the subcommand.
void add_engine_flags(CLI::App& command, EngineOptions& options);

// Returns the folder of the demo model, which is a part of Octavo. Searches for models/demo and
// share/octavo/models/demo in the folder of the program or library, in their parents, and in the source
// tree. Returns an error if none exists.
Result<std::string> demo_model_dir();

// Returns the path of `octavo`: this program, or octavo or bin/octavo in the folder of the library or in a
// parent. Returns an error if none exists.
Result<std::string> octavo_program();

}  // namespace octavo
