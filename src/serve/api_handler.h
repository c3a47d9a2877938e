// Interface between ApiServer and its services: one service, or one for each of many models.
#pragma once

#include <memory>
#include <vector>

#include "http/exchange.h"
#include "openai/api_key.h"
#include "serve/service.h"

namespace octavo {

class ApiHandler {
 public:
  virtual ~ApiHandler() = default;

  // Answers the exchange, directly or later on another thread. Called on an event loop, so it must not block.
  virtual void handle(const ApiKeys& keys, std::shared_ptr<http::Exchange> exchange) = 0;
  // Called after each response, for the metrics.
  virtual void count(const http::Answered& answered) = 0;
  // Returns the services that exist now.
  virtual std::vector<std::shared_ptr<Service>> services() const = 0;
  // Called when the server begins to stop: ends the requests that have not reached a service.
  virtual void stopping() {}
  // Called when the server accepts no more requests. After this call, services() must always return
  // the same services.
  virtual void stop() {}
};

}  // namespace octavo
