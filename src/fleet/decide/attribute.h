// Attributes of endpoints: numbers from metrics, with the names that policies use.
#pragma once

#include <string_view>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

class Parameters;

// source of attributes: customMetrics of engines' pages
inline constexpr std::string_view kCoreMetrics = "core-metrics-extractor";
inline constexpr std::string_view kGpuMetrics = "dcgm-extractor";
// the only attribute of kGpuMetrics, 0 to 1
inline constexpr std::string_view kGpuUtilization = "GPUUtilization";

// Reads the attribute with the name in `field` and the producer in `producer`. If the name is missing or the
// producer lacks it, an error is added to the parameters.
AttributeKey read_attribute(Parameters& parameters, std::string_view field);

}  // namespace octavo::fleet
