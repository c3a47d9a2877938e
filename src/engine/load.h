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

// The device "auto" is the CPU, with one line in the log, when there is a GPU and its backend cannot run this
// model. progress(bytes read, bytes in all) may be called from any thread while the weights load. `dress` may
// put another backend around the device's. Errors: the checkpoint is wrong or not supported, the device is
// not there, the memory does not suffice, the options contradict each other.
Result<LoadedEngine> load_engine(const EngineOptions& options,
                                 std::function<void(std::size_t, std::size_t)> progress = {},
                                 const std::function<Backend(Backend)>& dress = {});

}  // namespace octavo
