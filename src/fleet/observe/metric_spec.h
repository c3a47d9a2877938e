// A metric that a configuration names, with the labels that a series must have.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "fleet/observe/metric_line.h"

namespace octavo::fleet {

struct MetricSpec {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> labels = {};

  bool matches(const MetricLine& line) const;
};

// Parses "name{label=value, label="value"}", where the braces are optional. Errors report `field`.
Result<MetricSpec> parse_metric_spec(std::string_view text, std::string_view field);

}  // namespace octavo::fleet
