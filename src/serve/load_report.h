// Reports the load to load balancers in the response header endpoint-load-metrics (ORCA), with vLLM's metric
// names.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "http/exchange.h"
#include "request/engine_stats.h"
#include "serve/service.h"

namespace octavo {

// format: TEXT or JSON, in upper or lower case. Returns "" for other formats.
std::string load_report(std::span<const EngineStats> engines, std::string_view format);

// Adds the header endpoint-load-metrics to the response if the request has the header
// endpoint-load-metrics-format.
void report_load(const std::shared_ptr<Service>& service, http::Exchange& exchange);

}  // namespace octavo
