// Writes the OTLP export request as protobuf (ExportTraceServiceRequest).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/span.h"

namespace octavo {

// us_since_1970: number to add to now_us() to get Unix time in microseconds.
std::string otlp_message(const std::vector<Span>& spans, std::string_view service_name,
                         std::int64_t us_since_1970);

}  // namespace octavo
