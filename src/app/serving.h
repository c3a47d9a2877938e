// Serves a model over HTTP in this process, for `octavo serve` and `octavo run-batch`.
#pragma once

#include <memory>
#include <vector>

#include "app/serve_flags.h"
#include "fleet/discover/registration.h"
#include "serve/api_server.h"
#include "serve/stats_log.h"

namespace octavo {

struct Serving {
  std::unique_ptr<Runtime> runtime;  // must outlive the server
  std::unique_ptr<ApiServer> server;
  std::unique_ptr<StatsLog> stats_log;                // null: no statistics in the log
  std::unique_ptr<fleet::Registration> registration;  // null: not registered
};

// Sets the options that do not depend on the model's files. Returns an error for contradicting flags.
Result<> complete_options(ServeCommand& c);

// Returns the API keys of flags and environment.
std::vector<std::string> api_keys_of(const ServeCommand& c);

// Enables vLLM's lora_filesystem_resolver with the folder VLLM_LORA_RESOLVER_CACHE_DIR for the models that
// may load adapters at run time, unless VLLM_PLUGINS is set and does not contain it.
void take_adapter_folder(const std::vector<RuntimeOptions*>& models);

// Listens, and responds 503 while the model loads. Returns when the model is loaded.
Result<Serving> start_serving(ServeCommand& c);

}  // namespace octavo
