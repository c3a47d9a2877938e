#include "fleet/observe/gpu_metrics.h"

#include <algorithm>

#include "fleet/observe/metric_line.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kUtilization = "DCGM_FI_DEV_GPU_UTIL";  // percent

}  // namespace

std::optional<double> read_gpu_utilization(std::string_view page, std::string_view pod) {
  std::optional<double> busiest;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const auto sample = read_metric(page.substr(0, end));
    page.remove_prefix(std::min(end + 1, page.size()));
    if (!sample || sample->name != kUtilization) continue;
    const std::string_view owner = metric_label(sample->labels, "pod");
    if (!pod.empty() && !owner.empty() && owner != pod) continue;
    busiest = std::max(busiest.value_or(0), sample->value);
  }
  if (busiest) busiest = std::clamp(*busiest / 100, 0.0, 1.0);
  return busiest;
}

}  // namespace octavo::fleet
