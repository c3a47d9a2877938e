// EndpointPickerConfig (llm-d.ai/v1, v1alpha1 and earlier versions): the YAML file of the endpoint picker.
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

// TLS settings of a page. Files are in PEM; "": no file.
struct TlsSource {
  bool any_certificate = true;  // insecureSkipVerify: do not verify the certificates of endpoints
  std::string ca_file = {}, certfile = {}, keyfile = {};
};

// A page that the picker reads from each endpoint.
struct PageSource {
  std::string path = {};
  std::optional<TlsSource> tls = {};  // settings of https; nullopt: http
  std::int64_t interval_us = 0;  // rounded up to --refresh-metrics-interval
  int port = 0;                  // 0: the port of the endpoint
  bool at_node = false;          // read from the machine's address instead of the endpoint's
};

struct CacheEventsSource {
  std::string bind = {};  // address to which engines connect; "": not used
  std::string topic = "kv@";
  bool discover = true;     // subscribe to each endpoint
  int port = 5557;          // event port of rank 0; that of rank r is higher by r
  int replay_port = 0;      // replay port of rank 0; that of rank r is higher by r; 0: no replay
  LabelSelector pods = {};  // subscribe only to endpoints with these labels
};

// The default pipeline is the policy kv_aware.
struct EndpointPickerConfig {
  EndpointPickerConfig();

  PipelineConfig pipeline;
  PageSource metrics = {.path = "/metrics"};
  bool reads_metrics = true;              // read the engines' metrics (dataLayer.injectDefaults)
  EngineKinds engines;                    // names of the engines' metrics
  std::optional<PageSource> gpus = {};    // page of dcgm-exporter with the load of GPUs; nullopt: not read
  std::optional<PageSource> models = {};  // page with models and adapters; nullopt: not read
  Parsers parsers = {};
  std::optional<FileDiscovery> discovery = {};
  std::optional<RenderSource> tokens = {};              // nullopt: the tokens of prompts are estimated
  MediaTokens media_tokens = {};                        // for estimated tokens
  std::optional<CacheEventsSource> events = {};         // nullopt: no events
  std::optional<FlowGateOptions> flow = {};             // nullopt: the feature gate flowControl is off
  SaturationDetector shedding = UtilizationDetector{};  // without `flow`: decides when to refuse requests
  // port to which the gateway sends the requests for all ranks; 0: the port of the rank
  int primary_port = 0;
  std::vector<RequestAttribute> attributes = {};  // numbers to report to the gateway with each answer
  bool tells_served = false;                      // answers name the endpoint that served the request
};

// Parses a configuration. An unknown field, or a field of llm-d without support, is an error that names the
// field. experimental: allows plugins whose level in llm-d is alpha.
Result<EndpointPickerConfig> parse_endpoint_picker_config(const std::string& yaml, bool experimental = false);

}  // namespace octavo::fleet
