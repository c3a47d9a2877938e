// From options to a running engine: reads the checkpoint, plans the memory, starts the thread.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/engine_options.h"
#include "kernels/ops.h"
#include "model/spec.h"

namespace octavo {

struct LoadedEngine {
  std::unique_ptr<Engine> engine;
  ModelSpec spec;
  int max_model_len = 0;
  int num_blocks = 0;
  std::int64_t weight_bytes = 0;
  std::int64_t cache_bytes = 0;
};

// progress(bytes read, bytes in all) may be called from any thread while the weights load. Errors: the
// checkpoint is wrong or not supported, the device is not there, the memory does not suffice, the options
// contradict each other.
Result<LoadedEngine> load_engine(const EngineOptions& options,
                                 std::function<void(std::size_t, std::size_t)> progress = {});
// The same on a backend that is there already.
Result<LoadedEngine> load_engine(const EngineOptions& options, Backend backend,
                                 std::function<void(std::size_t, std::size_t)> progress = {});

// The device that the options ask for.
Result<Backend> make_backend(const EngineOptions& options);

}  // namespace octavo
