#include "fleet/extproc/endpoint_picker_config.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

EndpointPickerConfig read(const std::string& yaml) {
  auto parsed = parse_endpoint_picker_config(yaml);
  EXPECT_TRUE(parsed) << parsed.error().field << ": " << parsed.error().message;
  return parsed ? *std::move(parsed) : EndpointPickerConfig();
}

std::string steps(const EndpointPickerConfig& config) {
  std::string text;
  for (const StepConfig& step : config.pipeline.steps)
    text += fmt::format("{}x{} ", step.plugin, step.weight);
  return text;
}

TEST(EndpointPickerConfig, BeginsWithLlmdsDefault) {
  EXPECT_EQ(steps(read("")), "queue-scorerx2 kv-cache-utilization-scorerx2 prefix-cache-scorerx3 ");
}

TEST(EndpointPickerConfig, ReadsEverythingThatItKnows) {
  const auto config = read(R"(
apiVersion: llm-d.ai/v1alpha1
kind: EndpointPickerConfig
featureGates: ["flowControl=false"]
plugins:
- {name: queue, type: queue-scorer}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: approx-prefix-cache-producer}}
- {type: approx-prefix-cache-producer, parameters: {blockSizeTokens: 64, autoTune: false, lruCapacityPerServer: 1000}}
- {type: max-score-picker, parameters: {maxNumOfEndpoints: 2}}
- {type: single-profile-handler}
- {type: metrics-data-source, parameters: {scheme: http, path: /prometheus, interval: 200ms, insecureSkipVerify: true}}
- {type: core-metrics-extractor}
- {type: file-discovery, parameters: {path: /tmp/endpoints.yaml, watchFile: true}}
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: queue, weight: 2.5}
  - {pluginRef: prefix-cache-scorer}
  - {pluginRef: max-score-picker}
dataLayer:
  injectDefaults: true
  sources: [{pluginRef: metrics-data-source, extractors: [{pluginRef: core-metrics-extractor}]}]
  discovery: {pluginRef: file-discovery}
)");
  EXPECT_EQ(steps(config), "queuex2.5 prefix-cache-scorerx1 max-score-pickerx1 ");
  EXPECT_EQ(config.pipeline.plugins.size(), 4U);
  EXPECT_EQ(config.metrics.path, "/prometheus");
  EXPECT_EQ(config.metrics.interval_us, 200'000);
  ASSERT_TRUE(config.discovery);
  EXPECT_EQ(config.discovery->path, "/tmp/endpoints.yaml");
  EXPECT_TRUE(config.discovery->watch);
}

TEST(EndpointPickerConfig, WithoutProfilesAllPluginsMakeOne) {
  EXPECT_EQ(
      steps(read(
          "plugins: [{type: queue-scorer}, {type: approx-prefix-cache-producer}, {type: random-picker}]")),
      "queue-scorerx1 random-pickerx1 ");
}

TEST(EndpointPickerConfig, FlowControl) {
  const std::string yaml = R"(
plugins:
- {type: queue-scorer}
- {name: tight, type: utilization-detector, parameters: {queueDepthThreshold: 2, metricsStalenessThreshold: 1s}}
- {name: taking-turns, type: round-robin-fairness-policy}
- {type: static-usage-limit-policy, parameters: {threshold: 0.9}}
flowControl:
  maxBytes: 2Gi
  maxRequests: 7
  defaultRequestTTL: 30s
  noEndpointRequestTTL: 5m
  saturationDetector: {pluginRef: tight}
  defaultNegativePriorityBand: {maxRequests: 1}
  priorityBands:
  - {priority: 10, maxBytes: 512Mi, fairnessPolicyRef: taking-turns, orderingPolicyRef: slo-deadline-ordering-policy}
  - {priority: -1}
)";
  EXPECT_FALSE(read(yaml).flow) << "the gate is off";
  const auto config = read("featureGates: [flowControl]" + yaml);
  ASSERT_TRUE(config.flow);
  const FlowOptions& flow = config.flow->flow;
  EXPECT_EQ(flow.bytes_max, std::uint64_t{2} << 30);
  EXPECT_EQ(flow.requests_max, 7U);
  EXPECT_EQ(flow.ttl_us, 30'000'000);
  EXPECT_EQ(flow.no_endpoint_ttl_us, 300'000'000);
  EXPECT_EQ(flow.usage_limit, 0.9);
  EXPECT_EQ(flow.default_negative_band.requests_max, 1U);
  EXPECT_EQ(flow.default_band.requests_max, 5000U);
  EXPECT_EQ(flow.bands.at(10).bytes_max, 512U << 20);
  EXPECT_EQ(flow.bands.at(10).fairness, find_fairness("round-robin-fairness-policy"));
  EXPECT_EQ(flow.bands.at(10).ordering, find_ordering("slo-deadline-ordering-policy"));
  EXPECT_EQ(flow.bands.at(-1).requests_max, 5000U);
  const auto& detector = std::get<UtilizationDetector>(config.flow->detector);
  EXPECT_EQ(detector.queue_depth_threshold, 2);
  EXPECT_EQ(detector.kv_usage_threshold, 0.8);
  EXPECT_EQ(detector.staleness_us, 1'000'000);
  EXPECT_EQ(steps(config), "queue-scorerx1 ");
}

TEST(EndpointPickerConfig, ParsersThatAreNamedHaveNoFallback) {
  EXPECT_TRUE(read("").parsers.passthrough);
  const auto config = read(
      "plugins: [{type: queue-scorer}, {type: anthropic-parser}, {name: x, type: openai-parser}]\n"
      "requestHandler: {parsers: [{pluginRef: x}]}");
  EXPECT_TRUE(config.parsers.openai);
  EXPECT_FALSE(config.parsers.anthropic);
  EXPECT_FALSE(config.parsers.passthrough);
  EXPECT_EQ(steps(config), "queue-scorerx1 ");
}

TEST(EndpointPickerConfig, ProducersThatAreAlwaysThereMayBeNamed) {
  EXPECT_EQ(
      steps(
          read("plugins: [{type: inflight-load-producer}, {type: token-producer, parameters: {estimate: {}}},"
               " {type: tokenizer, parameters: {modelName: m}}, {type: load-aware-scorer}]")),
      "load-aware-scorerx1 ");
}

TEST(EndpointPickerConfig, MistakesNameTheField) {
  const auto expect = [](const std::string& yaml, std::string_view field) {
    const auto parsed = parse_endpoint_picker_config(yaml);
    ASSERT_FALSE(parsed) << yaml;
    EXPECT_EQ(parsed.error().field, field) << yaml;
  };
  expect("[", "config");
  expect("[]", "config");
  expect("plugin: []", "plugin");
  expect("kind: Other", "kind");
  expect("apiVersion: v1", "apiVersion");
  expect("flowControl: []", "flowControl");
  expect("flowControl: {maxSize: 1}", "flowControl.maxSize");
  expect("flowControl: {maxBytes: 1X}", "flowControl.maxBytes");
  expect("flowControl: {enableEviction: true}", "flowControl.enableEviction");
  expect("flowControl: {saturationDetector: {pluginRef: x}}", "flowControl.saturationDetector.pluginRef");
  expect("flowControl: {priorityBands: [{}]}", "flowControl.priorityBands[0].priority");
  expect("flowControl: {priorityBands: [{priority: 1}, {priority: 1}]}",
         "flowControl.priorityBands[1].priority");
  expect("flowControl: {priorityBands: [{priority: 1, fairnessPolicyRef: x}]}",
         "flowControl.priorityBands[0].fairnessPolicyRef");
  expect("featureGates: [another]", "featureGates[0]");
  expect("plugins: [{type: concurrency-detector, parameters: {maxConcurrency: 0}}]",
         "plugins[0].parameters.maxConcurrency");
  expect("requestHandler: []", "requestHandler");
  expect("requestHandler: {parsers: [{pluginRef: openai-parser}]}", "requestHandler.parsers[0].pluginRef");
  expect("plugins: [{type: token-producer, parameters: {vllm: {}}}]", "plugins[0].parameters.vllm");
  expect("plugins: {}", "plugins");
  expect("plugins: [7]", "plugins[0]");
  expect("plugins: [{type: nobody}]", "plugins[0].type");
  expect("plugins: [{type: queue-scorer, weight: 1}]", "plugins[0].weight");
  expect("plugins: [{type: queue-scorer, parameters: []}]", "plugins[0].parameters");
  expect("plugins: [{type: queue-scorer, parameters: {x: 1}}]", "plugins[0].parameters.x");
  expect("plugins: [{type: metrics-data-source, parameters: {scheme: https}}]",
         "plugins[0].parameters.scheme");
  expect("plugins: [{type: metrics-data-source, parameters: {port: 1}}]", "plugins[0].parameters.port");
  expect("plugins: [{type: file-discovery}]", "plugins[0].parameters.path");
  expect("plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: 0}}]",
         "plugins[0].parameters.maxNumOfEndpoints");
  expect("schedulingProfiles: []", "schedulingProfiles");
  expect("schedulingProfiles: [{plugin: []}]", "schedulingProfiles[0].plugin");
  expect("schedulingProfiles: [{plugins: [{pluginRef: x, wait: 1}]}]",
         "schedulingProfiles[0].plugins[0].wait");
  expect("dataLayer: {discovery: {pluginRef: x}}", "dataLayer.discovery.pluginRef");
  expect("dataLayer: {sources: [{pluginRef: x}]}", "dataLayer.sources[0].pluginRef");
  expect("dataLayer: {injectDefaults: no}", "dataLayer.injectDefaults");
}

}  // namespace
}  // namespace octavo::fleet
