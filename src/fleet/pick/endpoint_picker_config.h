// Parses EndpointPickerConfig, the YAML file of llm-d's endpoint picker (versions llm-d.ai/v1, v1alpha1 and
// earlier).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/error.h"
#include "fleet/balance/flow_gate.h"
#include "fleet/decide/pipeline.h"
#include "fleet/discover/pods.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/pick/processor.h"
#include "fleet/pick/prompt_renderer.h"

namespace octavo::fleet {

struct FileDiscovery {
  std::string path = {};
  bool watch = false;  // read the file again after changes
};

// TLS settings for reading a page. Files are in PEM format; "": no file.
struct TlsSource {
  bool any_certificate = true;  // insecureSkipVerify: do not verify the endpoints' certificates
  std::string ca_file = {}, certfile = {}, keyfile = {};
};

// A page that the picker reads from each endpoint, such as /metrics.
struct PageSource {
  std::string path = {};
  std::optional<TlsSource> tls = {};  // nullopt: use http
  std::int64_t interval_us = 0;       // rounded up to a multiple of --refresh-metrics-interval
  int port = 0;                       // 0: the endpoint's port
  // the endpoint's page is at the address of the machine that runs the endpoint, not at that of its pod
  bool at_node = false;
};

struct CacheEventsSource {
  std::string bind = {};  // address that engines connect to; "": not used
  std::string topic = "kv@";
  bool discover = true;
  int port = 5557;          // event port of rank 0; rank r uses port + r
  int replay_port = 0;      // replay port of rank 0; rank r uses replay_port + r; 0: no replays
  LabelSelector pods = {};  // subscribe only to endpoints with these labels
};

// A parsed configuration. The default pipeline is the policy kv_aware.
struct EndpointPickerConfig {
  EndpointPickerConfig();

  PipelineConfig pipeline;
  PageSource metrics = {.path = "/metrics"};
  bool reads_metrics = true;              // read the engines' metrics (dataLayer.injectDefaults)
  EngineKinds engines;
  std::optional<PageSource> gpus = {};  // dcgm-exporter's page with GPU utilization; nullopt: not read
  std::optional<PageSource> models = {};
  Parsers parsers = {};
  std::optional<FileDiscovery> discovery = {};
  std::optional<RenderSource> tokens = {};  // server that tokenises prompts; nullopt: tokens are estimated
  MediaTokens media_tokens = {};            // used if tokens are estimated
  std::optional<CacheEventsSource> events = {};         // nullopt: no KV cache events
  std::optional<FlowGateOptions> flow = {};             // nullopt: the feature gate flowControl is off
  // used if `flow` is not set, to decide when to refuse requests
  SaturationDetector shedding = UtilizationDetector{};
  // port that the gateway sends the requests for all ranks of a pod to; 0: each rank's own port
  int primary_port = 0;
  std::vector<RequestAttribute> attributes = {};  // numbers to report to the gateway with each response
  bool reports_served = false;
};

// Parses a configuration. Returns an error on any field that is unknown, or that llm-d has but this picker
// does not support. `experimental` allows plugins that llm-d marks as alpha.
Result<EndpointPickerConfig> parse_endpoint_picker_config(const std::string& yaml, bool experimental = false);

}  // namespace octavo::fleet
