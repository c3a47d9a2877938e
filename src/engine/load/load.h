// Loads an engine from options: reads the checkpoint, plans the memory and starts the engine's thread.
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

// Hooks of the caller; each may be empty.
struct LoadHooks {
  // Called on any thread with (bytes read, total bytes) while the weights load.
  std::function<void(std::size_t, std::size_t)> progress{};
  // Makes the vocabulary for grammars, for a model with `vocab_size` logits. Empty: requests cannot have a
  // grammar.
  std::function<Result<std::shared_ptr<const grammar::Vocabulary>>(int vocab_size)> vocabulary{};
  std::function<Backend(Backend)> dress{};  // wraps the device's backend
  std::function<void()> after_step{};       // see EngineParts
  // Command of a process that calls run_rank(); the rank's number is appended. Empty: only one rank is
  // possible.
  std::vector<std::string> rank_command{};
  // Descriptor of memory that outlives this process (KeptCache), which load_engine() takes over; -1: none.
  int kept_memory = -1;

  MakeVocabulary make_vocabulary(int vocab_size) const {
    if (!vocabulary) return {};
    return [make = vocabulary, vocab_size] { return make(vocab_size); };
  }
};

// Loads an engine. If the device is "auto" and the GPU's backend cannot run the model, the engine uses the
// CPU and logs this (choose_device.h). Returns an error if the checkpoint is invalid or not supported, if the
// device does not exist, if memory does not suffice, or if options contradict each other.
Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, const LoadHooks& hooks = {});

// Checks that this folder or GGUF file can replace the model's weights in load_engine()
// (ModelOptions::weights_dir). Errors name the field "weights_path".
Result<> check_weights(const EngineOptions& options, const std::string& path);

// Main function of a rank other than 0, with the options of load_engine. Returns when rank 0's process ends.
// Returns an error if this rank's part of the model cannot be loaded, or if another rank is lost.
Result<> run_rank(const EngineOptions& options, int rank);

}  // namespace octavo
