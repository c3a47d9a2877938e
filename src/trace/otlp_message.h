// Writes the OTLP export request as protobuf (ExportTraceServiceRequest).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/span.h"

namespace octavo {

// us_since_1970: what to add to now_us() for Unix time.
std::string otlp_message(const std::vector<Span>& spans, std::string_view service_name,
                         std::int64_t us_since_1970);

}  // namespace octavo
