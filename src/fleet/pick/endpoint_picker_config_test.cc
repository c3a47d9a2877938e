#include "fleet/pick/endpoint_picker_config.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "fleet/pick/test_config.h"

namespace octavo::fleet {
namespace {

TEST(EndpointPickerConfig, BeginsWithTheRoutersDefault) {
  EXPECT_EQ(steps(read("")), "kv-cost-scorerx1 softmax-pickerx1 ");
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

TEST(EndpointPickerConfig, HowBusyGpusAre) {
  const std::string yaml = R"(
plugins:
- {type: dcgm-data-source, name: gpus, parameters: {port: 9401, useNodeAddress: true, interval: "1s"}}
- {type: dcgm-extractor}
- type: endpoint-attribute-filter
  parameters:
    {attribute: GPUUtilization, producer: dcgm-extractor, algorithm: {type: threshold, threshold: {operator: LessThan, value: 0.9}}}
dataLayer: {sources: [{pluginRef: gpus, extractors: [{pluginRef: dcgm-extractor}]}]}
)";
  const auto config = parse_endpoint_picker_config(yaml, true);
  ASSERT_TRUE(config) << config.error().field << ": " << config.error().message;
  ASSERT_TRUE(config->gpus);
  EXPECT_EQ(config->gpus->path, "/metrics");
  EXPECT_EQ(config->gpus->port, 9401);
  EXPECT_TRUE(config->gpus->at_node);
  EXPECT_EQ(config->gpus->interval_us, 1'000'000);
  EXPECT_EQ(steps(*config), "endpoint-attribute-filterx1 ");
}

TEST(EndpointPickerConfig, PagesByHttps) {
  const auto config = read(R"(
plugins:
- {type: metrics-data-source, parameters: {scheme: https, insecureSkipVerify: false, caCertPath: /ca.pem}}
- {type: models-data-source, parameters: {scheme: http}}
)");
  ASSERT_TRUE(config.metrics.tls);
  EXPECT_FALSE(config.metrics.tls->any_certificate);
  EXPECT_EQ(config.metrics.tls->ca_file, "/ca.pem");
  EXPECT_FALSE(config.models->tls);
}

TEST(EndpointPickerConfig, MetricsAreReadWhereASourceIsNamedOrInjected) {
  EXPECT_TRUE(read("dataLayer: {}").reads_metrics);
  EXPECT_FALSE(read("dataLayer: {injectDefaults: false}").reads_metrics);
  EXPECT_TRUE(read("plugins: [{type: metrics-data-source}]\n"
                   "dataLayer: {injectDefaults: false, sources: [{pluginRef: metrics-data-source}]}")
                  .reads_metrics);
}

TEST(EndpointPickerConfig, AHeaderNamesTheProfile) {
  const std::string handler =
      "plugins: [{type: queue-scorer}, {type: header-profile-handler, parameters: {headerName: X-Stage, "
      "defaultProfile: a}}]\n";
  const auto config = parse_endpoint_picker_config(
      handler + "schedulingProfiles: [{name: a, plugins: [{pluginRef: queue-scorer}]}, {name: b}]", true);
  ASSERT_TRUE(config) << config.error().field << ": " << config.error().message;
  ASSERT_TRUE(config->pipeline.by_header);
  EXPECT_EQ(config->pipeline.by_header->header, "X-Stage");
  EXPECT_EQ(config->pipeline.by_header->unnamed, "a");
  EXPECT_EQ(config->pipeline.by_header->profiles.size(), 2U);
  const auto single = parse_endpoint_picker_config(
      handler + "schedulingProfiles: [{name: only, plugins: [{pluginRef: queue-scorer}]}]", true);
  ASSERT_TRUE(single);
  EXPECT_FALSE(single->pipeline.by_header) << "there is nothing to choose";
  EXPECT_EQ(steps(*single), "queue-scorerx1 ");
  const auto two = parse_endpoint_picker_config(
      "plugins: [{type: header-profile-handler}, {type: disagg-profile-handler}]\n"
      "schedulingProfiles: [{name: decode}]",
      true);
  ASSERT_FALSE(two);
  EXPECT_EQ(two.error().field, "plugins");
}

TEST(EndpointPickerConfig, MetricsOfEnginesThatNobodyKnows) {
  const auto config = read(R"(
plugins:
- type: core-metrics-extractor
  parameters:
    engineLabelKey: engine
    engineConfigs:
    - name: mine
      queuedRequestsSpec: "my_requests{state=queued}"
      cacheInfoSpec: my_cache
      cacheBlockSizeLabelName: size
      customMetrics: [{attributeKey: heat, metricSpec: my_heat}]
    defaultEngine: mine
)");
  EndpointState state;
  EXPECT_TRUE(
      read_engine_metrics("my_requests{state=\"running\"} 9\nmy_requests{state=\"queued\"} 3\n"
                          "my_cache{size=\"32\",num_gpu_blocks=\"100\"} 1\nmy_heat 70.5\n",
                          state, config.engines.of({})));
  EXPECT_EQ(state.waiting, 3);
  EXPECT_EQ(state.block_size, 32);
  EXPECT_EQ(state.num_blocks, 100);
  EXPECT_EQ(state.attribute({"heat", "core-metrics-extractor"}), 70.5);
  EXPECT_TRUE(read_engine_metrics("sglang:num_queue_reqs 5\n", state,
                                  config.engines.of({.labels = {{"engine", "sglang"}}})));
  EXPECT_EQ(state.waiting, 5);
}

TEST(EndpointPickerConfig, WithoutProfilesAllPluginsMakeOne) {
  EXPECT_EQ(
      steps(read(
          "plugins: [{type: queue-scorer}, {type: approx-prefix-cache-producer}, {type: random-picker}]")),
      "queue-scorerx1 random-pickerx1 ");
}

TEST(EndpointPickerConfig, PromptsAreComputedApart) {
  const std::string plugins = R"(
plugins:
- {type: queue-scorer}
- {type: prefill-filter}
- {type: decode-filter}
- {name: long, type: prefix-based-pd-decider, parameters: {nonCachedTokens: 16, promptTokens: 100}}
- {name: never, type: prefix-based-pd-decider}
)";
  const std::string profiles = R"(
schedulingProfiles:
- name: first
  plugins: [{pluginRef: prefill-filter}, {pluginRef: queue-scorer, weight: 2}]
- {name: decode, plugins: [{pluginRef: decode-filter}]}
)";
  const auto with = [&](const std::string& parameters) {
    return plugins + "- {type: disagg-profile-handler, parameters: " + parameters + "}" + profiles;
  };
  const auto config = read(with("{profiles: {prefill: first}, deciders: {prefill: long}}")).pipeline;
  ASSERT_EQ(config.steps.size(), 1U);
  EXPECT_EQ(config.steps[0].plugin, "decode-filter");
  ASSERT_TRUE(config.prefill);
  EXPECT_EQ(config.prefill->steps.size(), 2U);
  EXPECT_EQ(config.prefill->new_tokens, 16);
  EXPECT_EQ(config.prefill->prompt_tokens, 100);
  const auto rule = [&](const std::string& decider) {
    return *read(with("{profiles: {prefill: first}, deciders: {prefill: " + decider + "}}")).pipeline.prefill;
  };
  EXPECT_GT(rule("never").new_tokens, 1 << 30);
  EXPECT_EQ(rule("always-disagg-pd-decider").new_tokens, 0);
  EXPECT_FALSE(read(with("{}")).pipeline.prefill) << "nobody decides";
  const auto field = [&](const std::string& yaml) {
    const auto parsed = parse_endpoint_picker_config(yaml);
    return parsed ? "" : parsed.error().field;
  };
  EXPECT_EQ(field(plugins + profiles), "schedulingProfiles") << "which of them?";
  EXPECT_EQ(field(with("{profiles: {decode: x}}")), "schedulingProfiles");
  EXPECT_EQ(field(with("{deciders: {prefill: long}}")), "schedulingProfiles");
  EXPECT_EQ(field(with("{profiles: {prefill: first}, deciders: {prefill: x}}")), "plugins");
  EXPECT_EQ(field(with("{deciders: {encode: x}}")), "plugins");
  EXPECT_EQ(field(with("{deciders: {encode: always-disagg-multimodal-decider}}")), "schedulingProfiles");
  const auto apart =
      read(with("{profiles: {encode: first}, deciders: {encode: always-disagg-multimodal-decider}}"));
  ASSERT_TRUE(apart.pipeline.encode);
  EXPECT_EQ(apart.pipeline.encode->size(), 2U);
  EXPECT_EQ(field(with("{stageOrder: prefill-first}")), "plugins[5].parameters.stageOrder");
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
  std::vector<double> ceilings(2);
  flow.usage_limit->limit(0.5, std::vector<int>(ceilings.size(), 0), ceilings);
  EXPECT_EQ(ceilings, std::vector<double>(2, 0.9));
  EXPECT_EQ(flow.default_negative_band.requests_max, 1U);
  EXPECT_EQ(flow.default_band.requests_max, 5000U);
  EXPECT_EQ(flow.bands.at(10).bytes_max, 512U << 20);
  const auto turns = flow.bands.at(10).fairness->make();
  const std::vector<FlowHead> heads{{"a", {0, 1}}, {"b", {0, 2}}};
  EXPECT_EQ(turns->pick(heads, 0), 0U);
  EXPECT_EQ(turns->pick(heads, 0), 1U);
  EXPECT_EQ(flow.bands.at(10).ordering, find_ordering("slo-deadline-ordering-policy"));
  EXPECT_EQ(flow.bands.at(-1).requests_max, 5000U);
  const auto& detector = std::get<UtilizationDetector>(config.flow->detector);
  EXPECT_EQ(detector.queue_depth_threshold, 2);
  EXPECT_EQ(detector.kv_usage_threshold, 0.8);
  EXPECT_EQ(detector.staleness_us, 1'000'000);
  EXPECT_EQ(steps(config), "queue-scorerx1 tightx1 ");
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
               " {type: load-aware-scorer}]")),
      "load-aware-scorerx1 ");
}

TEST(EndpointPickerConfig, TokensAndWhatCachesHold) {
  const auto config = read(R"(
plugins:
- type: token-producer
  parameters: {modelName: m, vllm: {url: "http://render:8100/", timeout: 2s, mmTimeout: 1m}}
- {type: endpoint-notification-source}
- type: precise-prefix-cache-producer
  parameters:
    tokenProcessorConfig: {blockSize: 64, hashSeed: "42", hashAlgorithm: xxh64}
    indexerConfig: {kvBlockIndexConfig: {inMemoryConfig: {size: 1000, podCacheSize: 10}, enableMetrics: true}}
    kvEventsConfig:
      zmqEndpoint: tcp://0.0.0.0:5557
      topicFilter: "kv@a"
      podDiscoveryConfig: {podLabelSelector: app=vllm, socketPort: 6000, replaySocketPort: 6001}
- {type: prefix-cache-scorer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
dataLayer:
  sources: [{pluginRef: endpoint-notification-source, extractors: [{pluginRef: precise-prefix-cache-producer}]}]
)");
  ASSERT_TRUE(config.tokens);
  EXPECT_EQ(config.tokens->address->text(), "render:8100");
  EXPECT_EQ(config.tokens->model, "m");
  EXPECT_EQ(config.tokens->timeout_ms, 2000);
  EXPECT_EQ(config.tokens->media_timeout_ms, 60'000);
  ASSERT_TRUE(config.events);
  EXPECT_EQ(config.events->bind, "tcp://0.0.0.0:5557");
  EXPECT_EQ(config.events->topic, "kv@a");
  EXPECT_EQ(config.events->port, 6000);
  EXPECT_EQ(config.events->replay_port, 6001);
  EXPECT_EQ(config.events->pods.at("app"), "vllm");
  EXPECT_EQ(steps(config), "prefix-cache-scorerx1 ");
  ASSERT_TRUE(config.models) << "blocks of adapters bear their names";
  EXPECT_EQ(config.models->path, "/v1/models");
  EXPECT_EQ(config.models->interval_us, 1'000'000);
  EXPECT_FALSE(read("").events);
  EXPECT_FALSE(read("").models);
  EXPECT_EQ(read("plugins: [{type: tokenizer, parameters: {modelName: m}}]").tokens->address->text(),
            "localhost:8000");
}

TEST(EndpointPickerConfig, WhichAdaptersEndpointsServe) {
  const auto config = read(R"(
plugins:
- {type: models-data-source, parameters: {path: /models, interval: 10s, insecureSkipVerify: true}}
- {type: models-data-extractor}
- {type: precise-prefix-cache-producer}
dataLayer: {sources: [{pluginRef: models-data-source, extractors: [{pluginRef: models-data-extractor}]}]}
)");
  ASSERT_TRUE(config.models);
  EXPECT_EQ(config.models->path, "/models");
  EXPECT_EQ(config.models->interval_us, 10'000'000);
  const auto refused =
      parse_endpoint_picker_config("plugins: [{type: models-data-source, parameters: {path: x}}]");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "plugins[0].parameters.path");
}

TEST(EndpointPickerConfig, WhoIsLetInAndWhereRanksAre) {
  const auto config = read(R"(
plugins:
- {type: probabilistic-admitter, parameters: {power: 2, k: 1}}
- {type: data-parallel-profile-handler, parameters: {primaryPort: 9000}}
- {type: random-picker}
- {type: utilization-detector, parameters: {queueDepthThreshold: 999999999, kvCacheUtilThreshold: 1}}
flowControl: {saturationDetector: {pluginRef: utilization-detector}}
)");
  EXPECT_FALSE(config.flow) << "the gate is off, and still";
  EXPECT_EQ(std::get<UtilizationDetector>(config.shedding).queue_depth_threshold, 999999999);
  EXPECT_EQ(steps(config), "random-pickerx1 utilization-detectorx1 ") << "a filter, too, and no admitter";
  EXPECT_EQ(config.primary_port, 9000);
}

TEST(EndpointPickerConfig, WhatIsAlphaIsAskedFor) {
  for (const std::string plugin :
       {"topology-extractor", "topology-affinity-filter", "topology-affinity-scorer",
        "soft-reflective-ceiling-policy", "priority-holdback-policy, parameters: {minCeiling: 0.5}",
        "session-affinity-scorer", "burst-prefix-cache-producer", "dcgm-data-source", "dcgm-extractor",
        "agent-identity", "p2p-source-producer", "header-profile-handler, parameters: {}",
        "sheddable-eviction-filter", "priority-then-time-eviction-order-policy"}) {
    const std::string yaml = "plugins: [{type: queue-scorer}, {type: " + plugin + "}]";
    const auto refused = parse_endpoint_picker_config(yaml);
    ASSERT_FALSE(refused) << plugin;
    EXPECT_EQ(refused.error().field, "plugins[1].type");
    EXPECT_TRUE(parse_endpoint_picker_config(yaml, true)) << plugin;
  }
}

TEST(EndpointPickerConfig, QuantitiesAndWaitsOfBands) {
  const auto config = read(R"(
featureGates: [flowControl]
plugins: [{type: queue-scorer}]
flowControl:
  maxRequests: "1k"
  maxBytes: 10Gi
  priorityBands:
  - {priority: -1, defaultRequestTTL: 9000s, maxRequests: "50"}
  - {priority: 0, maxRequests: "0"}
)");
  const FlowOptions& flow = config.flow->flow;
  EXPECT_EQ(flow.requests_max, 1000U);
  EXPECT_EQ(flow.bytes_max, std::uint64_t{10} << 30);
  EXPECT_EQ(flow.bands.at(-1).ttl_us, 9'000'000'000);
  EXPECT_EQ(flow.bands.at(-1).requests_max, 50U);
  EXPECT_EQ(flow.bands.at(0).requests_max, BandOptions().requests_max) << "0: not given";
  EXPECT_FALSE(flow.bands.at(0).ttl_us);
}

TEST(EndpointPickerConfig, WhatIsNoStepMayStandInAProfile) {
  const auto config = read(R"(
plugins: [{type: tokenizer}, {type: predicted-latency-producer}, {type: openai-parser}, {type: latency-scorer}]
schedulingProfiles:
- name: default
  plugins:
  - {pluginRef: tokenizer}
  - {pluginRef: predicted-latency-producer}
  - {pluginRef: openai-parser}
  - {pluginRef: latency-scorer}
  - {pluginRef: active-request-scorer}
)");
  EXPECT_EQ(steps(config), "latency-scorerx1 active-request-scorerx1 ") << "the last needs no row";
}

TEST(EndpointPickerConfig, ImagesAndVideosCountAsTokens) {
  EXPECT_EQ(read("").media_tokens.image, 225);
  const auto config = read(R"(
plugins:
- {type: queue-scorer}
- type: token-producer
  parameters:
    estimate:
      image: {mode: dynamic, defaultResolution: {width: 1280, height: 720}, dynamic: {factor: 1024}}
      video:
        tokensPerFrame: {mode: static, static: {numTokensPerFrame: 256}}
        frames: {mode: sampled, maxFrames: 8, sampled: {sampleFPS: 2, temporalPatchSize: 2}}
        defaultDuration: 30
)");
  EXPECT_EQ(config.media_tokens.image, 900);
  EXPECT_EQ(config.media_tokens.video, 4 * 256);
  EXPECT_FALSE(config.tokens);
  const auto uds = read(
      "plugins: [{type: queue-scorer}, {type: token-producer, parameters: {modelName: m, udsTokenizerConfig: "
      "{socketFile: /tmp/s}}}]");
  ASSERT_TRUE(uds.tokens);
  EXPECT_FALSE(uds.tokens->address);
}

TEST(EndpointPickerConfig, ParametersOfNewerVersions) {
  const auto config = read(R"(
plugins:
- {type: inflight-load-producer, parameters: {prefixMatchInfoProducerName: precise-prefix-cache-producer}}
- {type: token-load-scorer, parameters: {inFlightLoadProducerName: inflight-load-producer}}
- {type: prefix-cache-affinity-filter, name: a, parameters: {maxTTFTPenaltyMs: 0, maxTokensInFlightPenalty: 286720}}
- {type: prefix-cache-affinity-filter, name: b, parameters: {ttftSource: latencyPredictor}}
- {type: program-aware-fairness, parameters: {strategy: turn-priority, turnPriorityTimeWeight: 0.05}}
- {type: by-label, parameters: {label: gpu, validValues: [h100], allowsNoLabel: true}}
- type: precise-prefix-cache-producer
  parameters:
    indexerConfig: {kvCacheBackendConfigs: [{name: gpu, weight: 1.0}, {name: cpu, weight: 0.4}]}
- {type: destination-endpoint-served-verifier}
)");
  EXPECT_TRUE(config.reports_served);
}

}  // namespace
}  // namespace octavo::fleet
