// Reads GPU utilization from the page of NVIDIA's dcgm-exporter (Prometheus text format).
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// How busy the busiest of the pod's GPUs is, 0 to 1. Series that name no pod count for all, and all count
// where the pod is not known (""). Returns nullopt if the page has no such series.
std::optional<double> read_gpu_utilization(std::string_view page, std::string_view pod);

}  // namespace octavo::fleet
