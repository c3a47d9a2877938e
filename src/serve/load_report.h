// Reports the load to load balancers in ORCA's response header endpoint-load-metrics, with vLLM's metric
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

// `format` is TEXT or JSON in any case. Returns "" for other formats.
std::string load_report(std::span<const EngineStats> engines, std::string_view format);

// Adds the header endpoint-load-metrics to the response if the request has the header
// endpoint-load-metrics-format.
void report_load(const std::shared_ptr<Service>& service, http::Exchange& exchange);

}  // namespace octavo
