// Reads the GPU utilization from the page of NVIDIA's dcgm-exporter (Prometheus text format).
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// Returns the utilization of the busiest GPU of the pod, from 0 to 1. A series without a pod label counts
// for all pods. If `pod` is "" (unknown), all series count. Returns nullopt if no series counts.
std::optional<double> read_gpu_utilization(std::string_view page, std::string_view pod);

}  // namespace octavo::fleet
