// The command-line flags that choose a model and an engine, shared by every subcommand that runs one. Names
// follow `vllm serve`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/error.h"
#include "engine/engine_options.h"

namespace octavo {

// Hidden: EngineOptions::index, for the processes of several engines behind one server.
inline constexpr const char* kEngineIndexFlag = "--engine-index";
// Hidden: EngineOptions::processors, for those processes.
inline constexpr const char* kProcessorsFlag = "--processors";

// Hidden: NodeOptions::expert_port, for engines that share experts.
inline constexpr const char* kExpertPortFlag = "--expert-port";
// Hidden: EngineOptions::weights_dir, for an engine that is started with other weights.
inline constexpr const char* kWeightsFlag = "--weights-dir";

inline constexpr const char* kKvTransferFlag = "--kv-transfer-config";
// Hidden: the process runs an engine for its parent.
inline constexpr const char* kRunEngineFlag = "--run-engine";
// In addition to kRunEngineFlag: the process runs a rank of that engine.
inline constexpr const char* kRunRankFlag = "--run-rank";

// Adds the flags to a subcommand; parsing fills `options`, which must outlive the subcommand.
void add_engine_flags(CLI::App& command, EngineOptions& options);

// The folder of the model that ships with Octavo: models/demo or share/octavo/models/demo beside the program
// or shared library, in a folder above it, or in the source tree that it was built from. Error: it is in none
// of them.
Result<std::string> demo_model_dir();

// The program `octavo` of this library: this program itself, or bin/octavo or octavo beside the library or in
// a folder above it. Error: it is in none of them.
Result<std::string> octavo_program();

}  // namespace octavo
