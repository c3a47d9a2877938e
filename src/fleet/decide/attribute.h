// Attributes of endpoints: numbers that metrics say of them, as policies name them.
#pragma once

#include <string_view>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

class Parameters;

inline constexpr std::string_view kCoreMetrics = "core-metrics-extractor";  // customMetrics of engines' pages
inline constexpr std::string_view kGpuMetrics = "dcgm-extractor";
inline constexpr std::string_view kGpuUtilization = "GPUUtilization";  // kGpuMetrics' only one, 0 to 1

// The attribute that `field` and `producer` name. Errors go to the parameters: the name is missing, or no
// producer has it.
AttributeKey read_attribute(Parameters& parameters, std::string_view field);

}  // namespace octavo::fleet
