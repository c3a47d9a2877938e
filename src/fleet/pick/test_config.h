// For tests: parses configurations, and describes their steps.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "fleet/pick/endpoint_picker_config.h"

namespace octavo::fleet {

inline EndpointPickerConfig read(const std::string& yaml) {
  auto parsed = parse_endpoint_picker_config(yaml);
  EXPECT_TRUE(parsed) << parsed.error().field << ": " << parsed.error().message;
  return parsed ? *std::move(parsed) : EndpointPickerConfig();
}

// Returns the steps with their weights, such as "queue-scorerx2 " for weight 2.
inline std::string steps(const EndpointPickerConfig& config) {
  std::string text;
  for (const StepConfig& step : config.pipeline.steps)
    text += fmt::format("{}x{} ", step.plugin, step.weight);
  return text;
}

}  // namespace octavo::fleet
