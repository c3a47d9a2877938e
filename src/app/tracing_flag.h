// --otlp-traces-endpoint, for all programs that export spans.
#pragma once

#include <memory>
#include <string>

#include "trace/tracer.h"

namespace octavo {

inline constexpr const char* kTracesFlag = "--otlp-traces-endpoint";

// Returns null if the endpoint is empty. service: name of the program in traces, unless OTEL_SERVICE_NAME
// is set.
Result<std::shared_ptr<Tracer>> start_tracer(const std::string& endpoint, const std::string& service);

}  // namespace octavo
