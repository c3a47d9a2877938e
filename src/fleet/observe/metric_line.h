// One line of a page in Prometheus' text format.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// Fields are views of the line.
struct MetricLine {
  std::string_view name;
  std::string_view labels = {};  // text between the braces
  double value = 0;              // always finite
};

// Parses a line. Returns nullopt for comments and invalid samples.
std::optional<MetricLine> read_metric(std::string_view line);

// Returns the value of a label, without unescaping; "" if the label is missing.
std::string_view metric_label(std::string_view labels, std::string_view name);

}  // namespace octavo::fleet
