// Aborts running requests by their ids.
#pragma once

#include <span>

#include "serve/routes/handlers.h"

namespace octavo::routes {

// Answers a request for /inference/v1/abort_requests or /abort_requests. Aborts requests of all these
// services. all_without_ids: whether a body without ids aborts all requests; otherwise it is an error.
Result<> abort_named(std::span<const ServicePtr> services, const ExchangePtr& exchange, bool all_without_ids);

}  // namespace octavo::routes
