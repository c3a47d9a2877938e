// Metrics of sessions (/v1/sessions).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "request/engine_stats.h"

namespace octavo {

// Returns the metrics of sessions in Prometheus' text format.
std::string session_metrics(std::span<const EngineStats> engines, std::string_view model_name);

}  // namespace octavo
