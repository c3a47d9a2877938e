// Attributes of endpoints: numbers from metrics pages, which plugins read by name and source.
#pragma once

#include <string_view>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

class Parameters;

// source of the attributes that the option customMetrics reads from engines' metrics
inline constexpr std::string_view kCoreMetrics = "core-metrics-extractor";
inline constexpr std::string_view kGpuMetrics = "dcgm-extractor";
// the only attribute of kGpuMetrics: utilization of the GPU, 0 to 1
inline constexpr std::string_view kGpuUtilization = "GPUUtilization";

// Reads the attribute's name from the parameter `field`, and its source from the parameter `producer`. Adds
// an error to `parameters` if the name is missing or the source does not provide the attribute.
AttributeKey read_attribute(Parameters& parameters, std::string_view field);

}  // namespace octavo::fleet
