// Interface through which the server's routes use files and batches. The module `batches` implements it.
#pragma once

#include <memory>

#include "http/exchange.h"

namespace octavo {

class BatchApi {
 public:
  virtual ~BatchApi() = default;
  // Answers a request to a route for files or batches. Called on an intake thread.
  virtual void handle(const std::shared_ptr<http::Exchange>& exchange) = 0;
  // Aborts the running lines of batches. They run again when the server next starts.
  virtual void stop() = 0;
};

}  // namespace octavo
