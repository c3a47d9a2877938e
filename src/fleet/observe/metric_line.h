// One line of Prometheus' text format.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// Views of the line.
struct MetricLine {
  std::string_view name;
  std::string_view labels = {};  // between the braces
  double value = 0;              // finite
};

// nullopt: a comment, or no sample that makes sense.
std::optional<MetricLine> read_metric(std::string_view line);

// The value of a label, without undoing escapes; "" if the label is missing.
std::string_view metric_label(std::string_view labels, std::string_view name);

}  // namespace octavo::fleet
