// Reads the GPU utilization from the page of NVIDIA's dcgm-exporter (Prometheus text format).
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// Returns the utilization of the pod's busiest GPU, 0 to 1. Series without a pod count for all pods; if `pod`
// is "" (unknown), all series count. Returns nullopt if there is no such series.
std::optional<double> read_gpu_utilization(std::string_view page, std::string_view pod);

}  // namespace octavo::fleet
