// Interface to files and batches for the server's routes. The module `batches` implements it.
#pragma once

#include <memory>

#include "http/exchange.h"

namespace octavo {

class BatchApi {
 public:
  virtual ~BatchApi() = default;
  // Answers a request to a route of files or batches. Runs on an intake thread.
  virtual void handle(const std::shared_ptr<http::Exchange>& exchange) = 0;
  // Ends the running lines without recording them; they run again after the server's next start.
  virtual void stop() = 0;
};

}  // namespace octavo
