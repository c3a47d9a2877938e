// EndpointPickerConfig (llm-d.ai/v1, v1alpha1, and earlier versions): the YAML file that configures the
// endpoint picker.
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
  bool watch = false;  // read the file again when it changes
};

// TLS settings for a page. Files are PEM; "": none.
struct TlsSource {
  bool any_certificate = true;  // insecureSkipVerify: endpoints' certificates are not verified
  std::string ca_file = {}, certfile = {}, keyfile = {};
};

// A page that the picker reads from each endpoint.
struct PageSource {
  std::string path = {};
  std::optional<TlsSource> tls = {};  // if set, uses https
  std::int64_t interval_us = 0;  // rounded up to --refresh-metrics-interval
  int port = 0;                  // 0: the endpoint's own port
  bool at_node = false;          // read from the address of the endpoint's machine
};

struct CacheEventsSource {
  std::string bind = {};  // address to which engines connect; "": none
  std::string topic = "kv@";
  bool discover = true;     // subscribe at each endpoint's address
  int port = 5557;          // port of rank 0's events; rank r has port + r
  int replay_port = 0;      // port of rank 0 for missed events, likewise; 0: no replay
  LabelSelector pods = {};  // use only endpoints with these labels
};

// Defaults: queue-scorer x2, kv-cache-utilization-scorer x2, prefix-cache-scorer x3 and max-score-picker.
struct EndpointPickerConfig {
  EndpointPickerConfig();

  PipelineConfig pipeline;
  PageSource metrics = {.path = "/metrics"};
  bool reads_metrics = true;              // dataLayer.injectDefaults: read the engines' metrics
  EngineKinds engines;                    // how to read engines' metrics
  std::optional<PageSource> gpus = {};    // page of dcgm-exporter, for the GPUs' load
  std::optional<PageSource> models = {};  // page with the adapters that endpoints serve
  Parsers parsers = {};
  std::optional<FileDiscovery> discovery = {};
  std::optional<RenderSource> tokens = {};              // nullopt: numbers of tokens are estimated
  MediaTokens media_tokens = {};                        // used for estimates
  std::optional<CacheEventsSource> events = {};         // nullopt: no events are read
  std::optional<FlowGateOptions> flow = {};             // nullopt if the feature gate flowControl is off,
  SaturationDetector shedding = UtilizationDetector{};  // then this detector decides when requests are
                                                        // refused
  int primary_port = 0;  // port to which the gateway sends all requests, for any rank; 0: the rank's own
                         // port
  std::vector<RequestAttribute> attributes = {};  // numbers that are reported to the gateway with each answer
  bool tells_served = false;                      // answers contain the endpoint that served them
};

// Strict: an unknown field, or a field of llm-d that is not supported, is an error that names the field.
// experimental: allows plugins whose level in llm-d is alpha.
Result<EndpointPickerConfig> parse_endpoint_picker_config(const std::string& yaml, bool experimental = false);

}  // namespace octavo::fleet
