// Flags of a model beside those of its engine (engine_flags.h), for `octavo serve` and the bindings.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "local/data_parallel.h"
#include "local/runtime.h"

namespace octavo {

struct KvOffloading {
  double gib = 0;  // 0: no tier
  std::string backend = "native";
};

struct RuntimeCommand {
  RuntimeOptions runtime;
  DataParallelOptions data_parallel;
  KvOffloading kv_offloading;
  std::string otlp_traces_endpoint;  // "": no traces
};

// Parsing fills `command`, which must outlive the app.
void add_runtime_flags(CLI::App& app, RuntimeCommand& command);

}  // namespace octavo
