// One line of a page in Prometheus' text format.
#pragma once

#include <optional>
#include <string_view>

namespace octavo::fleet {

// The fields are views of the line.
struct MetricLine {
  std::string_view name;
  std::string_view labels = {};  // the text between the braces
  double value = 0;              // always finite
};

// nullopt: a comment, or an invalid sample.
std::optional<MetricLine> read_metric(std::string_view line);

// The value of a label, with its escapes; "" if the label is missing.
std::string_view metric_label(std::string_view labels, std::string_view name);

}  // namespace octavo::fleet
