#include <gtest/gtest.h>

#include "fleet/pick/endpoint_picker_config.h"

namespace octavo::fleet {
namespace {

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
  expect("flowControl: {enableEviction: 1}", "flowControl.enableEviction");
  expect("flowControl: {saturationDetector: {pluginRef: x}}", "flowControl.saturationDetector.pluginRef");
  expect("flowControl: {priorityBands: [{}]}", "flowControl.priorityBands[0].priority");
  expect("flowControl: {priorityBands: [{priority: 1}, {priority: 1}]}",
         "flowControl.priorityBands[1].priority");
  expect("flowControl: {priorityBands: [{priority: 1, fairnessPolicyRef: x}]}",
         "flowControl.priorityBands[0].fairnessPolicyRef");
  expect("featureGates: [another]", "featureGates[0]");
  expect("plugins: [{type: concurrency-detector, parameters: {maxConcurrency: 0}}]",
         "plugins[0].parameters.maxConcurrency");
  expect("plugins: [{type: concurrency-detector, parameters: {concurrencyMode: x}}]",
         "plugins[0].parameters.concurrencyMode");
  expect("requestHandler: []", "requestHandler");
  expect("requestHandler: {parsers: [{pluginRef: openai-parser}]}", "requestHandler.parsers[0].pluginRef");
  expect("plugins: [{type: token-producer, parameters: {vllm: {}}}]", "plugins[0].parameters.modelName");
  expect("plugins: [{type: token-producer, parameters: {modelName: m, vllm: {grpc: x}}}]",
         "plugins[0].parameters.vllm.grpc");
  expect("plugins: [{type: token-producer, parameters: {modelName: m, vllm: {url: 'ftp://x'}}}]",
         "plugins[0].parameters.vllm.url");
  const auto precise = [&](const std::string& parameters, const std::string& field) {
    expect("plugins: [{type: precise-prefix-cache-producer, parameters: {" + parameters + "}}]",
           "plugins[0].parameters." + field);
  };
  precise("kvEventsConfig: {engineType: x}", "kvEventsConfig.engineType");
  precise("kvEventsConfig: {podDiscoveryConfig: {socketPort: 0}}",
          "kvEventsConfig.podDiscoveryConfig.socketPort");
  precise("indexerConfig: {kvBlockIndexConfig: {redisConfig: {}}}",
          "indexerConfig.kvBlockIndexConfig.redisConfig");
  precise("tokenProcessorConfig: {hashAlgorithm: md5}", "tokenProcessorConfig.hashAlgorithm");
  precise("speculativeTTL: 0s", "speculativeTTL");
  expect("plugins: [{type: probabilistic-admitter, parameters: {power: 0}}]", "plugins[0].parameters.power");
  expect("plugins: [{type: program-aware-fairness, parameters: {strategy: x}}]",
         "plugins[0].parameters.strategy");
  expect("plugins: {}", "plugins");
  expect("plugins: [7]", "plugins[0]");
  expect("plugins: [{type: nobody}]", "plugins[0].type");
  EXPECT_NE(parse_endpoint_picker_config("plugins: [{type: openai-parsr}]")
                .error()
                .message.find("; similar types: openai-parser, "),
            std::string::npos);
  expect("plugins: [{type: no\x95\xf1}]", "plugins[0].type");
  expect("schedulingProfiles: [{plugins: [{pluginRef: no\xff}]}]", "policy.plugins[0].pluginRef");
  expect("plugins: [{type: queue-scorer, weight: 1}]", "plugins[0].weight");
  expect("plugins: [{type: queue-scorer, parameters: []}]", "plugins[0].parameters");
  expect("plugins: [{type: queue-scorer, parameters: {x: 1}}]", "plugins[0].parameters.x");
  expect("plugins: [{type: metrics-data-source, parameters: {scheme: ftp}}]", "plugins[0].parameters.scheme");
  expect("plugins: [{type: metrics-data-source, parameters: {clientCertPath: /c}}]",
         "plugins[0].parameters.clientKeyPath");
  expect("plugins: [{type: metrics-data-source, parameters: {port: 1}}]", "plugins[0].parameters.port");
  const auto engine = [&](const std::string& parameters, const std::string& field) {
    expect("plugins: [{type: core-metrics-extractor, parameters: {" + parameters + "}}]",
           "plugins[0].parameters." + field);
  };
  engine("engineConfigs: {}", "engineConfigs");
  engine("engineConfigs: [{}]", "engineConfigs[0].name");
  engine("engineConfigs: [{name: a}, {name: a}]", "engineConfigs[1].name");
  engine("engineConfigs: [{name: a, kvUsageSpec: '{b=c}'}]", "engineConfigs[0].kvUsageSpec");
  engine("engineConfigs: [{name: a, customMetrics: [{attributeKey: b}]}]",
         "engineConfigs[0].customMetrics[0].metricSpec");
  engine("defaultEngine: a", "defaultEngine");
  expect("plugins: [{type: file-discovery}]", "plugins[0].parameters.path");
  expect("plugins: [{type: max-score-picker, parameters: {maxNumOfEndpoints: 0}}]",
         "plugins[0].parameters.maxNumOfEndpoints");
  expect("schedulingProfiles: []", "schedulingProfiles");
  expect("schedulingProfiles: [{plugin: []}]", "schedulingProfiles[0].plugin");
  expect("schedulingProfiles: [{plugins: [{pluginRef: x, wait: 1}]}]",
         "schedulingProfiles[0].plugins[0].wait");
  expect("dataLayer: {discovery: {pluginRef: x}}", "dataLayer.discovery.pluginRef");
  expect("dataLayer: {sources: [{pluginRef: x}]}", "dataLayer.sources[0].pluginRef");
  expect("dataLayer: {injectDefaults: 7}", "dataLayer.injectDefaults");
}

}  // namespace
}  // namespace octavo::fleet
