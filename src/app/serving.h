// A model behind the HTTP API in this process: common to `octavo serve` and `octavo run-batch`.
#pragma once

#include <memory>

#include "app/serve_flags.h"
#include "fleet/discover/registration.h"
#include "serve/api_server.h"
#include "serve/stats_log.h"

namespace octavo {

struct Serving {
  std::unique_ptr<Runtime> runtime;  // outlives the server
  std::unique_ptr<ApiServer> server;
  std::unique_ptr<StatsLog> stats_log;                // null: not requested
  std::unique_ptr<fleet::Registration> registration;  // null: in no list
};

// Listens at once and answers 503 until the model is loaded; returns after that.
Result<Serving> start_serving(ServeCommand& c);

}  // namespace octavo
