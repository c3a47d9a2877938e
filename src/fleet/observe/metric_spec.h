// A metric, as configurations name it.
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
  std::vector<std::pair<std::string, std::string>> labels = {};  // labels that a series must have

  bool matches(const MetricLine& line) const;
};

// Parses "name{label=value, label="value"}". Labels are optional. Errors: on `field`.
Result<MetricSpec> parse_metric_spec(std::string_view text, std::string_view field);

}  // namespace octavo::fleet
