// What NVIDIA's dcgm-exporter says of the GPUs beside an endpoint: Prometheus' text format.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// How busy the busiest of the pod's GPUs is, 0 to 1. Series that name no pod count for all, and all count
// where the pod is not known (""). Nothing: the page has none.
std::optional<double> read_gpu_utilization(std::string_view page, std::string_view pod);

}  // namespace octavo::fleet
