#include "fleet/pick/setup_table.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>

#include "base/quoted_text.h"
#include "fleet/decide/attribute.h"
#include "fleet/decide/parameters.h"
#include "fleet/pick/media_estimate.h"
#include "fleet/pick/prefill_config.h"
#include "http/async_client.h"

namespace octavo::fleet {

const PageSource kModelsPage{.path = "/v1/models", .interval_us = 1'000'000};

namespace {

namespace json = boost::json;

constexpr std::int64_t kRenderUsMax = 600'000'000;

// For plugins that are always active and have no parameters.
void accept(Parameters&, SetupTarget&) {}

void read_page_source(Parameters& parameters, PageSource& source) {
  std::string scheme = "http";
  TlsSource tls;
  parameters.read("scheme", scheme);
  if (scheme != "http" && scheme != "https") parameters.fail("scheme", "must be \"http\" or \"https\"");
  parameters.read("insecureSkipVerify", tls.any_certificate);
  parameters.read("caCertPath", tls.ca_file);
  parameters.read("clientCertPath", tls.certfile);
  parameters.read("clientKeyPath", tls.keyfile);
  if (tls.certfile.empty() != tls.keyfile.empty())
    parameters.fail(tls.certfile.empty() ? "clientCertPath" : "clientKeyPath",
                    "must be given, because clientCertPath and clientKeyPath need each other");
  if (scheme == "https") source.tls = std::move(tls);
  parameters.read("path", source.path);
  if (!source.path.starts_with('/')) parameters.fail("path", "must begin with a slash");
  parameters.read_duration("interval", source.interval_us);
}

void read_metrics_source(Parameters& parameters, SetupTarget& target) {
  read_page_source(parameters, target.config.metrics);
}

void read_models_source(Parameters& parameters, SetupTarget& target) {
  read_page_source(parameters, target.config.models.emplace(kModelsPage));
}

// Reads the source of GPU metrics, which is a dcgm-exporter beside each engine or on each machine.
void read_gpu_source(Parameters& parameters, SetupTarget& target) {
  PageSource& source = target.config.gpus.emplace(PageSource{.path = "/metrics"});
  std::int64_t port = 9400;
  read_page_source(parameters, source);
  parameters.read("port", port, 1, 65535);
  parameters.read("useNodeAddress", source.at_node);
  source.port = static_cast<int>(port);
}

void read_metric(Parameters& fields, std::string_view field, EngineMetric metric, EngineMetrics& engine) {
  std::string text;
  fields.read(field, text);
  if (text.empty()) return;  // the engine has no such metric
  if (auto spec = parse_metric_spec(text, field)) {
    metric.metric = *std::move(spec);
    engine.push_back(std::move(metric));
  } else {
    fields.fail(field, spec.error().message);
  }
}

void read_item(const json::value& item, Parameters& parameters, const std::string& where,
               const std::function<void(Parameters&)>& read_fields) {
  if (!item.is_object()) return parameters.fail(where, "must be an object");
  Parameters fields(item.get_object(), "");
  read_fields(fields);
  if (const auto done = fields.done(); !done)
    parameters.fail(where + "." + done.error().field, done.error().message);
}

void read_custom_metrics(Parameters& fields, EngineMetrics& engine) {
  const auto* list = fields.get("customMetrics");
  if (!list) return;
  if (!list->is_array()) return fields.fail("customMetrics", "must be a list");
  for (std::size_t i = 0; i < list->get_array().size(); ++i)
    read_item(list->get_array()[i], fields, fmt::format("customMetrics[{}]", i), [&](Parameters& metric) {
      std::string name;
      metric.read("attributeKey", name);
      const AttributeKey key{name, kCoreMetrics};
      if (name.empty()) metric.fail("attributeKey", "must be given");
      if (std::ranges::find(engine, key, &EngineMetric::attribute) != engine.end())
        metric.fail("attributeKey", fmt::format("the attribute {} already exists", quoted_text(name)));
      const std::size_t before = engine.size();
      read_metric(metric, "metricSpec", {.attribute = key}, engine);
      if (engine.size() == before) metric.fail("metricSpec", "must be given");
    });
}

// Reads an engine type. It replaces a built-in type with the same name.
void read_engine(Parameters& fields, EngineKinds& engines, std::vector<std::string>& own) {
  std::string name;
  EngineMetrics engine;
  fields.read("name", name);
  if (name.empty() || name == "default") fields.fail("name", "must be given and must not be \"default\"");
  if (std::ranges::find(own, name) != own.end())
    fields.fail("name", fmt::format("the engine {} already exists", quoted_text(name)));
  EngineMetric info{.figure = Figure::cache_config};
  fields.read("cacheBlockSizeLabelName", info.block_size_label);
  fields.read("cacheNumBlocksLabelName", info.num_blocks_label);
  read_metric(fields, "queuedRequestsSpec", {.figure = Figure::waiting}, engine);
  read_metric(fields, "runningRequestsSpec", {.figure = Figure::running}, engine);
  read_metric(fields, "kvUsageSpec", {.figure = Figure::kv_usage}, engine);
  read_metric(fields, "loraSpec", {.figure = Figure::adapters}, engine);
  read_metric(fields, "cacheInfoSpec", std::move(info), engine);
  read_metric(fields, "cacheBlockSizeSpec", {.figure = Figure::block_size}, engine);
  read_metric(fields, "cacheNumBlocksSpec", {.figure = Figure::num_blocks}, engine);
  read_custom_metrics(fields, engine);
  engines.kinds[name] = std::move(engine);
  own.push_back(std::move(name));
}

void read_core_metrics(Parameters& parameters, SetupTarget& target) {
  EngineKinds& engines = target.config.engines;
  std::vector<std::string> own;
  parameters.read("engineLabelKey", engines.label);
  if (const auto* list = parameters.get("engineConfigs"); list && list->is_array()) {
    for (std::size_t i = 0; i < list->get_array().size(); ++i)
      read_item(list->get_array()[i], parameters, fmt::format("engineConfigs[{}]", i),
                [&](Parameters& fields) { read_engine(fields, engines, own); });
  } else if (list) {
    parameters.fail("engineConfigs", "must be a list");
  }
  constexpr std::string_view kDefault = "vllm";
  if (std::ranges::find(own, kDefault) != own.end()) engines.unlabelled = kDefault;
  parameters.read("defaultEngine", engines.unlabelled);
  if (!engines.unlabelled.empty() && !engines.kinds.contains(engines.unlabelled))
    parameters.fail("defaultEngine", "must be the name of an engine");
}

void read_file_discovery(Parameters& parameters, SetupTarget& target) {
  FileDiscovery discovery;
  parameters.read("path", discovery.path);
  parameters.read("watchFile", discovery.watch);
  if (discovery.path.empty()) parameters.fail("path", "must name a file");
  target.config.discovery = discovery;
}

// Has no effect, because the balancer counts the requests in flight, including their output tokens.
void read_inflight_producer(Parameters& parameters, SetupTarget&) {
  bool estimates = false, synced = false;
  std::string prefixes;  // has no effect, because the balancer uses all producers
  parameters.read("prefixMatchInfoProducerName", prefixes);
  parameters.read("syncCrossReplicaState", synced);
  if (synced)
    parameters.fail("syncCrossReplicaState",
                    "must be false, because each picker counts the requests that it sent");
  for (const char* field : {"outputRatio", "maxEstimatedOutputTokens"})
    parameters.get(field);  // parameters of estimates, which are not used
  parameters.read("addEstimatedOutputTokens", estimates);
  if (estimates)
    parameters.fail("addEstimatedOutputTokens",
                    "must be false, because the picker counts output tokens when they arrive");
}

// Configures how prompts are tokenised: by a server, or by counting four bytes as one token. Prompts that the
// client sends as tokens need neither.
void read_token_producer(Parameters& parameters, SetupTarget& target) {
  RenderSource source;
  parameters.read("modelName", source.model);
  const bool has_models = parameters.get("vllm") || !source.model.empty();
  parameters.read_object("vllm", [&](Parameters& fields) {
    std::string url = "http://localhost:8000";
    fields.read("url", url);
    while (url.ends_with('/')) url.pop_back();
    if (auto address = http::parse_base_url(url))
      source.address = *std::move(address);
    else
      fields.fail("url",
                  fmt::format("must be a URL like \"http://localhost:8000\", got {}", quoted_text(url)));
    for (const auto& [name, ms] :
         {std::pair("timeout", &source.timeout_ms), {"mmTimeout", &source.media_timeout_ms}}) {
      std::int64_t us = std::int64_t{1000} * *ms;
      fields.read_duration(name, us);
      if (us < 1000 || us > kRenderUsMax) fields.fail(name, "must be from 1 ms to 10 minutes");
      *ms = static_cast<int>(std::clamp(us, std::int64_t{1000}, kRenderUsMax) / 1000);
    }
  });
  // The deprecated tokenizer on a Unix socket is replaced by endpoints of the pool.
  std::string socket;
  bool tcp = false;
  parameters.read_object("udsTokenizerConfig", [&](Parameters& fields) {
    fields.read("socketFile", socket);
    fields.read("useTCP", tcp);
    source.address.reset();
  });
  if (parameters.get("vllm") && parameters.get("udsTokenizerConfig"))
    parameters.fail("udsTokenizerConfig", "cannot be combined with vllm");
  if (parameters.get("vllm") && source.model.empty()) parameters.fail("modelName", "must be given with vllm");
  if (has_models && parameters.get("estimate"))
    parameters.fail("estimate", "cannot be combined with modelName and vllm");
  parameters.read_object(
      "estimate", [&](Parameters& fields) { read_media_estimate(fields, target.config.media_tokens); });
  if (has_models || !source.address) target.config.tokens = std::move(source);
}

void read_expression(Parameters& fields, std::string_view field, std::optional<UsageExpression>& expression) {
  std::string text;
  fields.read(field, text);
  if (text.empty()) return;
  if (auto parsed = UsageExpression::parse(text))
    expression = *std::move(parsed);
  else
    fields.fail(field, parsed.error().message);
}

void read_attribute_reporter(Parameters& parameters, SetupTarget& target) {
  const auto* list = parameters.get("attributes");
  if (!list || !list->is_array() || list->get_array().size() != 1)
    return parameters.fail("attributes", "must be a list with exactly one attribute");
  read_item(list->get_array()[0], parameters, "attributes[0]", [&](Parameters& fields) {
    std::string space = "envoy.lb", name;
    fields.read_object("key", [&](Parameters& key) {
      key.read("namespace", space);
      key.read("name", name);
    });
    if (name.empty()) fields.fail("key.name", "must be given");
    std::optional<UsageExpression> expression, condition;
    read_expression(fields, "expression", expression);
    read_expression(fields, "condition", condition);
    if (!expression) return fields.fail("expression", "must be given");
    target.config.attributes.push_back({.space = space.empty() ? "envoy.lb" : space,
                                        .name = name,
                                        .expression = *std::move(expression),
                                        .condition = std::move(condition)});
  });
}

void read_served_verifier(Parameters&, SetupTarget& target) { target.config.reports_served = true; }

// The sidecar of a data-parallel engine forwards a request to the rank that the request's header names.
void read_data_parallel(Parameters& parameters, SetupTarget& target) {
  std::int64_t port = 8000;
  parameters.read("primaryPort", port, 1, 65535);
  target.config.primary_port = static_cast<int>(port);
}

void read_disagg_handler(Parameters& parameters, SetupTarget& target) {
  target.prefill.read_handler(parameters);
}
void read_pd_handler(Parameters& parameters, SetupTarget& target) {
  target.prefill.read_old_handler(parameters);
  if (target.prefill.primary_port() > 0) target.config.primary_port = target.prefill.primary_port();
}
void read_header_handler(Parameters& parameters, SetupTarget& target) {
  target.prefill.read_header_handler(parameters);
}
void read_prefix_decider(Parameters& parameters, SetupTarget& target) {
  target.prefill.read_decider(target.name, parameters);
}
void read_always_prefill(Parameters&, SetupTarget& target) { target.prefill.always_prefill(target.name); }
void read_always_encode(Parameters&, SetupTarget& target) { target.prefill.always_encode(target.name); }

// Deprecated. Has no effect, because the profile handler's choice sets the headers.
void read_headers_handler(Parameters& parameters, SetupTarget&) {
  std::string profile;
  for (const char* field : {"prefillProfile", "encodeProfile"}) parameters.read(field, profile);
}

constexpr SetupRow kSetupTable[] = {
    {"always-disagg-multimodal-decider", SetupKind::handler, read_always_encode},
    {"always-disagg-pd-decider", SetupKind::handler, read_always_prefill},
    {"anthropic-parser", SetupKind::parser, accept},
    {"core-metrics-extractor", SetupKind::extractor, read_core_metrics},
    {"data-parallel-profile-handler", SetupKind::handler, read_data_parallel},
    {"dcgm-data-source", SetupKind::source, read_gpu_source, Stability::alpha},
    {"dcgm-extractor", SetupKind::extractor, accept, Stability::alpha},
    {"destination-endpoint-served-verifier", SetupKind::handler, read_served_verifier},
    {"disagg-headers-handler", SetupKind::handler, read_headers_handler},
    {"disagg-profile-handler", SetupKind::handler, read_disagg_handler},
    // has no effect, because all plugins are notified
    {"endpoint-notification-source", SetupKind::source, accept},
    {"file-discovery", SetupKind::discovery, read_file_discovery},
    {"header-profile-handler", SetupKind::handler, read_header_handler, Stability::alpha},
    {"inflight-load-producer", SetupKind::producer, read_inflight_producer},
    {"metrics-data-source", SetupKind::source, read_metrics_source},
    {"models-data-extractor", SetupKind::extractor, accept},
    {"models-data-source", SetupKind::source, read_models_source},
    {"openai-parser", SetupKind::parser, accept},
    {"passthrough-parser", SetupKind::parser, accept},
    {"pd-profile-handler", SetupKind::handler, read_pd_handler},           // deprecated
    {"prefill-header-handler", SetupKind::handler, read_headers_handler},  // deprecated
    {"prefix-based-pd-decider", SetupKind::handler, read_prefix_decider},
    {"request-attribute-reporter", SetupKind::handler, read_attribute_reporter},
    {"sglanghttp-parser", SetupKind::parser, accept},
    {"single-profile-handler", SetupKind::handler, accept},
    {"token-producer", SetupKind::producer, read_token_producer},
    {"vllmgrpc-parser", SetupKind::parser, accept},
    {"vllmhttp-parser", SetupKind::parser, accept},
};

}  // namespace

std::span<const SetupRow> setup_table() { return kSetupTable; }

const SetupRow* find_setup(std::string_view type) {
  const auto found = std::ranges::find(kSetupTable, type, &SetupRow::type);
  return found != std::end(kSetupTable) ? &*found : nullptr;
}

void read_cache_events(Parameters& parameters, CacheEventsSource& source) {
  constexpr std::int64_t kPortMax = 65535;
  std::string engine = "vllm", selector;
  std::int64_t concurrency = 4, port = source.port, replay_port = source.replay_port;
  parameters.read("zmqEndpoint", source.bind);
  parameters.read("topicFilter", source.topic);
  parameters.read("concurrency", concurrency, 1, 1024);  // has no effect, because there is one thread
  parameters.read("engineType", engine);
  if (engine != "vllm" && engine != "sglang") parameters.fail("engineType", "must be \"vllm\" or \"sglang\"");
  parameters.read("discoverPods", source.discover);
  std::string space;  // has no effect, because the namespace is the pool's
  parameters.read_object("podDiscoveryConfig", [&](Parameters& fields) {
    fields.read("podNamespace", space);
    fields.read("podLabelSelector", selector);
    fields.read("socketPort", port, 1, kPortMax);
    fields.read("replaySocketPort", replay_port, 0, kPortMax);
    if (auto labels = parse_label_selector(selector, "podLabelSelector"))
      source.pods = *std::move(labels);
    else
      fields.fail("podLabelSelector", labels.error().message);
  });
  source.port = static_cast<int>(port);
  source.replay_port = static_cast<int>(replay_port);
}

}  // namespace octavo::fleet
