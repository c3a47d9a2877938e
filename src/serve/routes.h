// Which request is answered by what.
#pragma once

#include <memory>

#include "http/exchange.h"
#include "serve/api_key.h"
#include "serve/service.h"

namespace octavo {

// Answers the exchange, at once or later from the service's threads. Without a right key only /health is
// answered.
void route(const std::shared_ptr<Service>& service, const ApiKeys& keys,
           std::shared_ptr<http::Exchange> exchange);

}  // namespace octavo
