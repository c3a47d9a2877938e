#include "fleet/pick/old_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/pick/test_config.h"

namespace octavo::fleet {
namespace {

TEST(EndpointPickerConfig, EachVersionIsRead) {
  for (const char* version :
       {"llm-d.ai/v1", "llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1",
        "config.x-k8s.io/v1alpha1", "config.apix.gateway-api-inference-extension.sigs.k8s.io/v1alpha1"})
    EXPECT_EQ(steps(read(fmt::format("apiVersion: {}\nplugins: [{{type: queue-scorer}}]", version))),
              "queue-scorerx1 ");
  const auto config = read(R"(
apiVersion: llm-d.ai/v1
plugins:
- {type: file-discovery, parameters: {path: /tmp/endpoints.yaml}}
- {type: metrics-data-source}
- {type: core-metrics-extractor}
- {type: queue-scorer}
dataLayer:
  injectDefaults: false
  discovery: {endpoints: {pluginRef: file-discovery}}
  sources: [{pluginRef: metrics-data-source, extractors: [{pluginRef: core-metrics-extractor}]}]
featureGates: [dataLayer, prepareDataPlugins=true]
)");
  EXPECT_TRUE(config.discovery);
}

TEST(EndpointPickerConfig, DeprecatedSectionsMeanWhatTheirSuccessorsMean) {
  const auto thresholds = read(
      "plugins: [{type: queue-scorer}, {type: openai-parser}]\n"
      "saturationDetector: {queueDepthThreshold: 10, kvCacheUtilThreshold: 0.8, metricsStalenessThreshold: "
      "150ms}\n"
      "parser: {pluginRef: openai-parser}");
  EXPECT_EQ(std::get<UtilizationDetector>(thresholds.shedding).queue_depth_threshold, 10);
  EXPECT_TRUE(thresholds.parsers.openai);
  EXPECT_FALSE(thresholds.parsers.anthropic);
  const auto both = read(
      "plugins: [{type: queue-scorer}, {type: openai-parser}, {type: anthropic-parser}]\n"
      "parser: {pluginRef: openai-parser}\n"
      "requestHandler: {parsers: [{pluginRef: anthropic-parser}]}");
  EXPECT_TRUE(both.parsers.openai && both.parsers.anthropic);
  EXPECT_FALSE(both.parsers.passthrough);
  const auto named = read(
      "plugins: [{type: queue-scorer}, {type: concurrency-detector}]\n"
      "saturationDetector: {pluginRef: concurrency-detector}");
  EXPECT_TRUE(std::holds_alternative<ConcurrencyDetector>(named.shedding));
}

TEST(EndpointPickerConfig, DeprecatedHandlersOfPrefill) {
  const std::string profiles =
      "schedulingProfiles:\n"
      "- {name: d, plugins: [{pluginRef: decode-filter}]}\n"
      "- {name: p, plugins: [{pluginRef: prefill-filter}]}\n";
  const std::string plugins =
      "plugins:\n"
      "- {type: decode-filter}\n"
      "- {type: prefill-filter}\n"
      "- {type: disagg-headers-handler, parameters: {prefillProfile: p}}\n"
      "- {type: prefix-based-pd-decider, parameters: {nonCachedTokens: 16}}\n";
  for (const std::string handler :
       {"{type: pd-profile-handler, parameters: {decodeProfile: d, prefillProfile: p, prefixPluginName: x}}",
        "{type: disagg-profile-handler, parameters: {decodeProfile: d, prefillProfile: p, "
        "deciderPluginName: prefix-based-pd-decider}}"}) {
    const auto config = read(plugins + "- " + handler + "\n" + profiles);
    ASSERT_TRUE(config.pipeline.prefill) << handler;
    EXPECT_EQ(config.pipeline.prefill->new_tokens, 16);
  }
  EXPECT_EQ(read(plugins +
                 "- {type: pd-profile-handler, parameters: {decodeProfile: d, prefillProfile: p, "
                 "primaryPort: 8000}}\n" +
                 profiles)
                .primary_port,
            8000);
}

TEST(EndpointPickerConfig, TheDeprecatedPreciseScorerIsProducerAndScorer) {
  const std::string scorer = R"(
- type: precise-prefix-cache-scorer
  parameters:
    tokenProcessorConfig: {blockSize: 64}
    indexerConfig: {tokenizersPoolConfig: {modelName: m, uds: {socketFile: /tmp/s}}, kvBlockIndexConfig: {enableMetrics: true}}
    kvEventsConfig: {podDiscoveryConfig: {socketPort: 5556}}
)";
  const std::string rest =
      "- {type: endpoint-notification-source}\n"
      "- {type: no-hit-lru-scorer, parameters: {prefixPluginName: precise-prefix-cache-scorer}}\n"
      "dataLayer: {sources: [{pluginRef: endpoint-notification-source, extractors: [{pluginRef: "
      "precise-prefix-cache-scorer}]}]}\n"
      "schedulingProfiles: [{name: default, plugins: [{pluginRef: precise-prefix-cache-scorer, weight: 3}]}]";
  const auto alone = read("plugins:" + scorer + rest);
  ASSERT_TRUE(alone.events);
  EXPECT_EQ(alone.events->port, 5556);
  ASSERT_TRUE(alone.tokens);
  EXPECT_EQ(alone.tokens->model, "m");
  EXPECT_FALSE(alone.tokens->address) << "endpoints of the pool tokenise";
  EXPECT_EQ(steps(alone), "precise-prefix-cache-scorerx3 ");
  const auto beside =
      read("plugins:" + scorer + "- {type: precise-prefix-cache-producer, name: exact}\n" + rest);
  const auto found = std::ranges::find(beside.pipeline.plugins, "prefix-cache-scorer", &PluginConfig::type);
  ASSERT_NE(found, beside.pipeline.plugins.end());
  EXPECT_EQ(found->parameters.at("prefixMatchInfoProducerName").as_string(), "exact");
}

TEST(EndpointPickerConfig, ThePrefixScorersOldParametersAreAProducers) {
  const auto config = read(
      "plugins: [{type: prefix-cache-scorer, parameters: {hashBlockSize: 64, maxPrefixBlocksToMatch: 256, "
      "lruCapacityPerServer: 1000}}]");
  ASSERT_EQ(config.pipeline.plugins.size(), 2U);
  EXPECT_EQ(config.pipeline.plugins[1].type, "approx-prefix-cache-producer");
  EXPECT_EQ(config.pipeline.plugins[1].parameters.at("lruCapacityPerServer").as_int64(), 1000);
  EXPECT_EQ(config.pipeline.plugins[0].parameters.at("prefixMatchInfoProducerName").as_string(),
            config.pipeline.plugins[1].name);
  EXPECT_EQ(steps(config), "prefix-cache-scorerx1 ");
}

TEST(EndpointPickerConfig, WhatIsMissingIsRefusedWithWhatDoesTheSame) {
  for (const std::string type :
       {"vertexai-parser", "multicluster-queue-scorer", "disaggregatedset-rollout-screener",
        "k8s-notification-source", "low-queue-filter"}) {
    const auto refused = parse_endpoint_picker_config("plugins: [{type: " + type + "}]", true);
    ASSERT_FALSE(refused) << type;
    EXPECT_EQ(refused.error().field, "plugins[0].type");
    EXPECT_NE(refused.error().message.find("is not supported: "), std::string::npos) << type;
  }
}

TEST(OldConfig, TypesKeepTheNamesThatProfilesUse) {
  const auto config = read(R"(
plugins: [{type: kv-cache-scorer}, {type: queue-scorer}, {type: model-server-protocol-metrics, parameters: {defaultEngine: sglang}}]
data: {sources: []}
metadata: {name: default}
featureGates: [enableLegacyMetrics, "flowControl=F"]
schedulingProfiles: [{name: default, plugins: [{pluginRef: kv-cache-scorer, weight: 2}, {pluginRef: queue-scorer}]}]
)");
  EXPECT_EQ(steps(config), "kv-cache-scorerx2 queue-scorerx1 ");
  EXPECT_EQ(config.pipeline.plugins.at(0).type, "kv-cache-utilization-scorer");
  EXPECT_EQ(config.engines.unlabelled, "sglang");
  EXPECT_FALSE(config.flow);
}

TEST(OldConfig, GatesHaveGosTruthValues) {
  for (const char* on : {"flowControl", "flowControl=1", "flowControl=T", "flowControl=True"})
    EXPECT_TRUE(read(fmt::format("featureGates: ['{}']", on)).flow) << on;
  for (const char* off : {"flowControl=0", "flowControl=false", "another=FALSE"})
    EXPECT_FALSE(read(fmt::format("featureGates: ['{}']", off)).flow) << off;
  for (const char* wrong : {"flowControl=qwerty", "another", "another=true", ""})
    EXPECT_FALSE(parse_endpoint_picker_config(fmt::format("featureGates: ['{}']", wrong))) << wrong;
}

TEST(OldConfig, APrefixScorerThatTrackedCachesIsThePreciseOne) {
  const auto config = read(R"(
plugins:
- type: prefix-cache-scorer
  parameters:
    mode: cache_tracking
    tokenProcessorConfig: {blockSizeTokens: 64, hashSeed: "42"}
    indexerConfig: {kvBlockIndexConfig: {enableMetrics: true, metricsLoggingInterval: 60000000000}}
schedulingProfiles: [{name: default, plugins: [{pluginRef: prefix-cache-scorer, weight: 2}]}]
)");
  EXPECT_EQ(steps(config), "prefix-cache-scorerx2 ");
  EXPECT_EQ(config.pipeline.plugins.at(0).type, "precise-prefix-cache-scorer");
  EXPECT_TRUE(config.events);
}

TEST(OldConfig, ParametersOfTheIndexHaveMoved) {
  const auto config = read(R"(
plugins:
- {type: token-producer, parameters: {modelName: m, vllm: {http: "http://engine:8001"}}}
- type: precise-prefix-cache-scorer
  parameters:
    indexerConfig:
      tokenProcessorConfig: {blockSize: 5}
      prefixStoreConfig: {cacheSize: 500000}
      kvBlockIndexConfig: {maxPrefixBlocksToMatch: 256}
)");
  ASSERT_TRUE(config.tokens && config.tokens->address);
  EXPECT_EQ(config.tokens->address->text(), "engine:8001");
  EXPECT_EQ(config.pipeline.plugins.at(0).parameters.at("tokenProcessorConfig").at("blockSize").as_int64(),
            5);
}

// Conversion moves fields between objects that grow.
TEST(OldConfig, ThePreciseScorerOfTheFirstVersions) {
  const auto config = read(R"(
plugins:
- type: prefix-cache-scorer
  parameters:
    mode: cache_tracking
    kvEventsConfig: {podDiscoveryConfig: {socketPort: 5556}}
    indexerConfig:
      tokenProcessorConfig: {blockSize: 16, hashSeed: "42"}
      tokenizersPoolConfig: {modelName: m, hf: {tokenizersCacheDir: /cache}}
      kvBlockIndexConfig: {enableMetrics: false, metricsLoggingInterval: 6000000000}
- {type: decode-filter}
- {type: single-profile-handler}
schedulingProfiles: [{name: default, plugins: [{pluginRef: decode-filter}, {pluginRef: prefix-cache-scorer, weight: 2}]}]
)");
  EXPECT_EQ(steps(config), "decode-filterx1 prefix-cache-scorerx2 ");
  ASSERT_TRUE(config.events && config.tokens);
  EXPECT_EQ(config.events->port, 5556);
  EXPECT_EQ(config.tokens->model, "m");
}

TEST(OldConfig, OnePluginPredictedLatencies) {
  const auto config = read(R"(
plugins:
- {type: predicted-latency-scorer, parameters: {samplingMean: 1000.0, headroomTTFTWeight: 0.5, affinityGateTau: 0.8}}
schedulingProfiles: [{name: default, plugins: [{pluginRef: predicted-latency-scorer}]}]
)");
  EXPECT_EQ(steps(config), "predicted-latency-scorerx1 ");
  ASSERT_EQ(config.pipeline.plugins.size(), 2U);
  EXPECT_EQ(config.pipeline.plugins[0].type, "latency-scorer");
  EXPECT_EQ(config.pipeline.plugins[0].parameters.at("ttftWeight").as_double(), 0.5);
  EXPECT_EQ(config.pipeline.plugins[1].type, "predicted-latency-producer");
  EXPECT_EQ(config.pipeline.plugins[1].parameters.at("samplingMean").as_double(), 1000);
}

// In llm-d-inference-scheduler 0.2 to 0.5, the handler decides by the number of uncached bytes.
TEST(OldConfig, ThresholdsOfTheFirstProfileHandlers) {
  const std::string rest = R"(
- {type: prefix-cache-scorer, parameters: {hashBlockSize: 5}}
- {type: prefill-filter}
- {type: decode-filter}
schedulingProfiles:
- {name: prefill, plugins: [{pluginRef: prefill-filter}, {pluginRef: prefix-cache-scorer}]}
- {name: decode, plugins: [{pluginRef: decode-filter}, {pluginRef: prefix-cache-scorer}]}
)";
  const auto rule = [&](const std::string& handler) {
    const auto config = read("plugins:\n- " + handler + rest);
    return config.pipeline.prefill ? config.pipeline.prefill->new_tokens : -1;
  };
  EXPECT_EQ(rule("{type: pd-profile-handler, parameters: {threshold: 10, hashBlockSize: 5}}"), 3);
  EXPECT_EQ(rule("{type: pd-profile-handler, parameters: {threshold: 0, hashBlockSize: 5}}"), 0);
  EXPECT_EQ(rule("{type: pd-profile-handler}"), 0) << "every prompt goes to prefill";
  EXPECT_EQ(rule("{type: disagg-profile-handler, parameters: {threshold: 0, hashBlockSize: 5}}"), 0);
  EXPECT_EQ(rule("{type: disagg-profile-handler}"), -1) << "no decider: prompts stay";
  const auto refused = parse_endpoint_picker_config(
      "plugins:\n- {type: pd-profile-handler, parameters: {threshold: -1}}" + rest);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "plugins[0].parameters.threshold");
}

TEST(OldConfig, TheQueueScorerIgnoredParametersOfThePrefixScorer) {
  const auto config = read(R"(
plugins:
- {type: queue-scorer, parameters: {hashBlockSize: 5, maxPrefixBlocksToMatch: 256, lruCapacityPerServer: 31250}}
)");
  EXPECT_EQ(config.pipeline.plugins.at(0).type, "queue-scorer");
  EXPECT_TRUE(config.pipeline.plugins.at(0).parameters.empty());
}

TEST(OldConfig, OnePrefixScorerHadTheParametersOfBoth) {
  const auto config = read(R"(
plugins:
- type: prefix-cache-scorer
  parameters:
    mode: cache_tracking
    blockSize: 16
    lruCapacityPerServer: 31250
    maxPrefixBlocksToMatch: 256
    kvCacheRedisAddr: "redis://localhost:6379"
    indexerConfig:
      speculativeIndexing: true
      tokenProcessorConfig: {blockSize: 64, hashSeed: "42"}
)");
  const auto& parameters = config.pipeline.plugins.at(0).parameters;
  EXPECT_EQ(parameters.at("tokenProcessorConfig").at("blockSize").as_int64(), 64);
  EXPECT_TRUE(parameters.at("speculativeIndexing").as_bool());
}

}  // namespace
}  // namespace octavo::fleet
