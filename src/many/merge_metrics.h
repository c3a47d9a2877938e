// Merges the metrics of several models into one page in Prometheus' text format.
#pragma once

#include <span>
#include <string>

namespace octavo::many {

// Each metric gets one HELP and one TYPE line. Series with equal names and labels are added up, because they
// belong to the whole server.
std::string merge_metrics(std::span<const std::string> pages);

}  // namespace octavo::many
