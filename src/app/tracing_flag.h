// --otlp-traces-endpoint of every program that writes spans.
#pragma once

#include <memory>
#include <string>

#include "trace/tracer.h"

namespace octavo {

inline constexpr const char* kTracesFlag = "--otlp-traces-endpoint";

// Null without an endpoint. service: the name of the program in traces, unless OTEL_SERVICE_NAME has one.
Result<std::shared_ptr<Tracer>> start_tracer(const std::string& endpoint, const std::string& service);

}  // namespace octavo
