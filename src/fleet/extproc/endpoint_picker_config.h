// EndpointPickerConfig (llm-d.ai/v1alpha1): the YAML that says how an endpoint is picked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "fleet/decide/pipeline.h"
#include "fleet/extproc/flow_gate.h"
#include "fleet/extproc/processor.h"

namespace octavo::fleet {

struct FileDiscovery {
  std::string path = {};
  bool watch = false;  // read again when the file changes
};

struct MetricsSource {
  std::string path = "/metrics";
  std::int64_t interval_us = 0;  // 0: as often as --refresh-metrics-interval says
};

// queue-scorer x2, kv-cache-utilization-scorer x2, prefix-cache-scorer x3 and max-score-picker to begin with.
struct EndpointPickerConfig {
  EndpointPickerConfig();

  PipelineConfig pipeline;
  MetricsSource metrics = {};
  Parsers parsers = {};
  std::optional<FileDiscovery> discovery = {};
  std::optional<FlowGateOptions> flow = {};  // nothing: the feature gate flowControl is off
};

// Strict: a field that is unknown, or known to llm-d and not done here, is an error that names it.
Result<EndpointPickerConfig> parse_endpoint_picker_config(const std::string& yaml);

}  // namespace octavo::fleet
