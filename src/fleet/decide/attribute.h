// Attributes of endpoints: numbers from metrics, which policies read by name.
#pragma once

#include <string_view>

#include "fleet/view/endpoint.h"

namespace octavo::fleet {

class Parameters;

// source of attributes: the option customMetrics names metrics of engines
inline constexpr std::string_view kCoreMetrics = "core-metrics-extractor";
inline constexpr std::string_view kGpuMetrics = "dcgm-extractor";
// the only attribute of kGpuMetrics: used fraction of the GPU, 0 to 1
inline constexpr std::string_view kGpuUtilization = "GPUUtilization";

// Reads the attribute with the name in `field` and the producer in `producer`. Adds an error to the
// parameters if the name is missing or the producer does not provide it.
AttributeKey read_attribute(Parameters& parameters, std::string_view field);

}  // namespace octavo::fleet
