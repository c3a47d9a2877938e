// Parses one line in Prometheus' text format.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// The string_views point into the parsed line.
struct MetricLine {
  std::string_view name;
  std::string_view labels = {};  // text between the braces
  double value = 0;              // always finite
};

// Returns nullopt if the line is a comment or an invalid sample.
std::optional<MetricLine> read_metric(std::string_view line);

// Returns the value of the label as written, with its escapes. Returns "" if the label is missing.
std::string_view metric_label(std::string_view labels, std::string_view name);

}  // namespace octavo::fleet
