// The OTLP export request as a protobuf message (ExportTraceServiceRequest).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trace/span.h"

namespace octavo {

// us_since_1970: offset from now_us() to Unix time.
std::string otlp_message(const std::vector<Span>& spans, std::string_view service_name,
                         std::int64_t us_since_1970);

}  // namespace octavo
