// Interface of files and batches to the server's routes. The room `batches` implements it.
#pragma once

#include <memory>

#include "http/exchange.h"

namespace octavo {

class BatchApi {
 public:
  virtual ~BatchApi() = default;
  // Answers a request to a route of files or batches. On an intake thread.
  virtual void handle(const std::shared_ptr<http::Exchange>& exchange) = 0;
  // Ends the lines that run without recording them; the next start of the server runs them again.
  virtual void stop() = 0;
};

}  // namespace octavo
