// Loads an engine from its options: reads the checkpoint, plans the memory and starts the engine thread.
// The server calls it.
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

// Callbacks and values that the caller provides. Each one may be empty.
struct LoadHooks {
  // Called on any thread with (bytes read, total bytes) while the weights are loaded.
  std::function<void(std::size_t, std::size_t)> progress{};
  // Creates the vocabulary for grammars. `vocab_size` is the number of the model's logits. Empty: requests
  // cannot have a grammar.
  std::function<Result<std::shared_ptr<const grammar::Vocabulary>>(int vocab_size)> vocabulary{};
  std::function<Backend(Backend)> dress{};  // replaces or wraps the backend, for benchmarks and tests
  std::function<void()> after_step{};       // see EngineParts
  // Command of a process that calls run_rank(). The rank is appended to it. Empty: the engine can have only
  // one rank.
  std::vector<std::string> rank_command{};
  // File descriptor of memory that outlives this process (KeptCache). load_engine() takes ownership. -1: no
  // such memory.
  int kept_memory = -1;

  MakeVocabulary make_vocabulary(int vocab_size) const {
    if (!vocabulary) return {};
    return [make = vocabulary, vocab_size] { return make(vocab_size); };
  }
};

// Loads an engine. Returns an error if the checkpoint is invalid or not supported, if the device does not
// exist, if there is not enough memory, or if options contradict each other.
Result<std::unique_ptr<Engine>> load_engine(const EngineOptions& options, const LoadHooks& hooks = {});

// Checks that the weights in this folder or GGUF file can replace the weights of the model
// (ModelOptions::weights_dir). Returns an error on "weights_path".
Result<> check_weights(const EngineOptions& options, const std::string& path);

// Main function of a rank other than 0, with the same options as load_engine(). Returns when the process of
// rank 0 ends. Returns an error if this rank's part of the model cannot be loaded, or if another rank is
// lost.
Result<> run_rank(const EngineOptions& options, int rank);

}  // namespace octavo
