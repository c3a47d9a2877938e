// From options to a running engine: reads the checkpoint, plans the memory, starts the thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "engine/engine_options.h"
#include "engine/loop/engine.h"
#include "kernels/ops.h"

namespace octavo {

// What the one who loads an engine may add. Each may be empty.
struct LoadHooks {
  // Called with (bytes read, bytes in all), from any thread, while the weights load.
  std::function<void(std::size_t, std::size_t)> progress{};
  // Of grammars, for a model with this number of logits; empty: requests cannot have one.
  std::function<Result<std::shared_ptr<const grammar::Vocabulary>>(int vocab_size)> vocabulary{};
  std::function<Backend(Backend)> dress{};  // puts another backend around the device's
  std::function<void()> after_step{};       // see EngineParts
  // The command of a process that calls run_rank(); the rank's number is added to it. Empty: there can be one
  // rank alone.
  std::vector<std::string> rank_command{};
};

// The device "auto" is the CPU, with one line in the log, when there is a GPU and its backend cannot run this
// model (choose_device.h). Errors: the checkpoint is wrong or not supported, the device is not there, the
// memory does not suffice, the options contradict each other.
Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, const LoadHooks& hooks = {});

// Whether load_engine() finds the model's weights in this folder, or GGUF file, in place of its own
// (weights_dir). Errors: field "weights_path".
Result<> check_weights(const EngineOptions& options, const std::string& path);

// The process of a rank other than 0, with the options of load_engine: works until rank 0's process ends.
// Errors: its part cannot be loaded; another rank is gone.
Result<> run_rank(const EngineOptions& options, int rank);

}  // namespace octavo
