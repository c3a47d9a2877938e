#include "fleet/pick/endpoint_picker_config.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <functional>
#include <limits>
#include <map>

#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/policies.h"
#include "fleet/pick/flow_control_config.h"
#include "fleet/pick/prefill_config.h"
#include "fleet/pick/setup_table.h"
#include "fleet/pick/unsupported_plugins.h"
#include "yaml/yaml.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 3> kApiVersions{"llm-d.ai/v1", "llm-d.ai/v1alpha1",
                                                       "inference.networking.x-k8s.io/v1alpha1"};
constexpr std::string_view kKind = "EndpointPickerConfig";
constexpr std::string_view kPrecise = "precise-prefix-cache-producer";
constexpr std::string_view kPreciseScorer = "precise-prefix-cache-scorer";  // deprecated: both in one
constexpr std::string_view kPrefixScorer = "prefix-cache-scorer";
constexpr std::string_view kMatchProducer = "prefixMatchInfoProducerName";
// Gates of older versions, for what is always on.
constexpr std::array<std::string_view, 3> kAlwaysOn{"dataLayer", "prepareDataPlugins",
                                                    "haPopulateNonLeaderDatastore"};
constexpr std::array<std::string_view, 4> kNoSteps{"-producer", "-extractor", "-admitter",
                                                   "-identity"};  // ends of types

constexpr Parsers kNoParsers{.openai = false, .anthropic = false, .vllm = false, .passthrough = false};

// Those that llm-d calls alpha.
constexpr std::string_view kExperimental[] = {"agent-identity",
                                              "burst-prefix-cache-producer",
                                              "dcgm-data-source",
                                              "dcgm-extractor",
                                              "endpoint-attribute-filter",
                                              "endpoint-attribute-scorer",
                                              "header-label-affinity-scorer",
                                              "header-profile-handler",
                                              "p2p-source-producer",
                                              "priority-holdback-policy",
                                              "priority-then-time-eviction-order-policy",
                                              "session-affinity-filter",
                                              "session-affinity-scorer",
                                              "sheddable-eviction-filter",
                                              "soft-reflective-ceiling-policy",
                                              "topology-affinity-filter",
                                              "topology-affinity-scorer",
                                              "topology-extractor",
                                              "utilization-filter"};

std::vector<std::string_view> setup_types() {
  std::vector<std::string_view> types;
  for (const SetupRow& row : setup_table()) types.push_back(row.type);
  return types;
}

const std::string& name_of(const PluginConfig& plugin) {
  return plugin.name.empty() ? plugin.type : plugin.name;
}

class Reader {
 public:
  explicit Reader(bool experimental) : experimental_(experimental) {}

  Result<EndpointPickerConfig> read(const json::object& file) {
    config_.pipeline = {};
    Parameters fields(file, "");
    std::string version = std::string(kApiVersions[0]), kind = std::string(kKind);
    fields.read("apiVersion", version);
    fields.read("kind", kind);
    if (std::ranges::find(kApiVersions, version) == kApiVersions.end())
      fields.fail("apiVersion", fmt::format("{} is not supported: must be {}", quoted_text(version),
                                            fmt::join(kApiVersions, ", ")));
    if (kind != kKind) fields.fail("kind", fmt::format("must be {}", quoted_text(kKind)));
    const auto* gates = fields.get("featureGates");
    const auto* plugins = fields.get("plugins");
    const auto* profiles = fields.get("schedulingProfiles");
    const auto* data_layer = fields.get("dataLayer");
    const auto* flow_control = fields.get("flowControl");
    const auto* handler = fields.get("requestHandler");
    const auto* detector = fields.get("saturationDetector");
    const auto* parser = fields.get("parser");
    TRY_VOID(fields.done());
    if (gates) TRY_VOID(read_gates(*gates));
    if (plugins) {
      precise_producer_ = name_of_type(*plugins, kPrecise);
      TRY_VOID(each(*plugins, "plugins", &Reader::read_plugin));
    }
    if (data_layer) TRY_VOID(read_data_layer(*data_layer));
    if (parser) TRY_VOID(read_old_parser(*parser));
    if (handler) TRY_VOID(read_request_handler(*handler));
    if (detector) TRY_VOID(flow_.read_old_detector(*detector));
    if (flow_control) TRY_VOID(flow_.read_section(*flow_control));
    if (flow_enabled_) config_.flow = flow_.options();
    config_.shedding = flow_.options().detector;
    if (config_.discovery && !discovery_chosen_) config_.discovery.reset();
    if (prefill_.primary_port() > 0) config_.primary_port = prefill_.primary_port();
    if (profiles) {
      TRY_VOID(each(*profiles, "schedulingProfiles", &Reader::read_profile));
      TRY_VOID(prefill_.choose_profiles(std::move(profiles_), config_.pipeline));
    } else {
      for (const PluginConfig& plugin : config_.pipeline.plugins)
        if (std::ranges::none_of(kNoSteps, [&](auto end) { return plugin.type.ends_with(end); }))
          config_.pipeline.steps.push_back({.plugin = name_of(plugin)});
    }
    return std::move(config_);
  }

 private:
  struct Setup {
    std::string name;
    std::string type;
    SetupKind kind;
  };

  // Calls `read_item` for each object of a list.
  Result<> each(const json::value& list, const std::string& where,
                Result<> (Reader::*read_item)(const json::object&, const std::string&)) {
    if (!list.is_array()) return invalid(where, "must be a list");
    for (std::size_t i = 0; i < list.get_array().size(); ++i) {
      const json::value& item = list.get_array()[i];
      const std::string place = fmt::format("{}[{}]", where, i);
      if (!item.is_object()) return invalid(place, "must be an object");
      TRY_VOID((this->*read_item)(item.get_object(), place));
    }
    return {};
  }

  Result<> read_gates(const json::value& gates) {
    if (!gates.is_array()) return invalid("featureGates", "must be a list");
    for (std::size_t i = 0; i < gates.get_array().size(); ++i) {
      const json::value& gate = gates.get_array()[i];
      const std::string_view text =
          gate.is_string() ? std::string_view(gate.get_string()) : std::string_view();
      if (text == "flowControl" || text == "flowControl=true") {
        flow_enabled_ = true;
      } else if (std::ranges::find(kAlwaysOn, text.substr(0, text.find("=true"))) == kAlwaysOn.end() &&
                 !text.ends_with("=false")) {
        return invalid(fmt::format("featureGates[{}]", i),
                       "{} is not known: must be flowControl, or off "
                       "(\"name=false\")",
                       quoted_text(text));
      }
    }
    return {};
  }

  Result<> read_plugin(const json::object& plugin, const std::string& where) {
    Parameters fields(plugin, where);
    PluginConfig config;
    fields.read("name", config.name);
    fields.read("type", config.type);
    if (const auto* parameters = fields.get("parameters"); parameters && !parameters->is_null()) {
      if (!parameters->is_object()) return invalid(where + ".parameters", "must be an object");
      config.parameters = parameters->get_object();
    }
    TRY_VOID(fields.done());
    const std::string name = name_of(config);
    if (const std::string_view why = why_unsupported(config.type); !why.empty())
      return invalid(where + ".type", "{} is not supported: {}", quoted_text(config.type), why);
    if (config.type == kPreciseScorer && precise_producer_) {
      if (!config.parameters.empty())
        log_warning("{}: the parameters of {} have no effect beside {}", where, name, *precise_producer_);
      config.type = kPrefixScorer;
      config.parameters = {{kMatchProducer, *precise_producer_}};
      setups_.push_back({name, config.type, SetupKind::extractor});
    }
    if (config.type == kPrefixScorer) take_producer_out(config, name);
    if (!experimental_ && std::ranges::find(kExperimental, config.type) != std::end(kExperimental))
      return invalid(
          where + ".type",
          "{} has Alpha stability level, but command line flag --allow-experimental-plugins is not set",
          quoted_text(config.type));
    Parameters parameters(config.parameters, where + ".parameters");
    if (flow_.read_plugin(name, config.type, parameters) ||
        prefill_.read_plugin(name, config.type, parameters)) {
      if (config.type.ends_with("-detector")) config_.pipeline.plugins.push_back(config);  // a filter, too
      return parameters.done();
    }
    const auto row = std::ranges::find(setup_table(), config.type, &SetupRow::type);
    if (row == setup_table().end()) {
      if (std::ranges::find(plugin_table(), config.type, &PluginRow::type) == plugin_table().end())
        return unknown_plugin(where + ".type", config.type, setup_types());
      const bool precise = config.type == kPrecise || config.type == kPreciseScorer;
      if (precise) TRY_VOID(read_precise(config, where + ".parameters"));
      if (precise || config.type.ends_with("-producer") || config.type.ends_with("-extractor"))
        setups_.push_back({name, config.type, SetupKind::extractor});
      config_.pipeline.plugins.push_back(std::move(config));
      return {};
    }
    row->read(parameters, config_);
    setups_.push_back({name, config.type, row->kind});
    return parameters.done();
  }

  // The name of the first plugin of a type; nullopt if no plugin has it.
  static std::optional<std::string> name_of_type(const json::value& plugins, std::string_view type) {
    if (!plugins.is_array()) return std::nullopt;
    const auto text = [](const json::value& plugin, std::string_view field) {
      const auto* found = plugin.is_object() ? plugin.get_object().if_contains(field) : nullptr;
      return found && found->is_string() ? std::string(found->get_string()) : std::string();
    };
    for (const json::value& plugin : plugins.get_array())
      if (text(plugin, "type") == type)
        return text(plugin, "name").empty() ? std::string(type) : text(plugin, "name");
    return std::nullopt;
  }

  // The scorer of the Gateway API Inference Extension had the producer's parameters: a producer takes them.
  void take_producer_out(PluginConfig& scorer, const std::string& name) {
    PluginConfig producer{.name = name + "-producer", .type = "approx-prefix-cache-producer"};
    for (const char* field : {"autoTune", "blockSizeTokens", "blockSize", "hashBlockSize",
                              "maxPrefixBlocksToMatch", "maxPrefixTokensToMatch", "lruCapacityPerServer"})
      if (const auto* value = scorer.parameters.if_contains(field)) {
        producer.parameters[field] = *value;
        scorer.parameters.erase(field);
      }
    if (producer.parameters.empty() || scorer.parameters.contains(kMatchProducer)) return;
    scorer.parameters[kMatchProducer] = producer.name;
    config_.pipeline.plugins.push_back(std::move(producer));
  }

  // Its index is fed by this room; the rest is the plugin's own.
  Result<> read_precise(PluginConfig& config, const std::string& where) {
    take_tokenizer(config);
    config_.events.emplace();
    if (!config_.models) config_.models = kModelsPage;  // the blocks of adapters bear their names
    const auto* section = config.parameters.if_contains("kvEventsConfig");
    if (!section) return {};
    if (!section->is_object()) return invalid(where + ".kvEventsConfig", "must be an object");
    Parameters fields(section->get_object(), where + ".kvEventsConfig");
    read_cache_events(fields, *config_.events);
    TRY_VOID(fields.done());
    config.parameters.erase("kvEventsConfig");
    return {};
  }

  // Older versions name the tokenizer's model within the index. Endpoints of the pool tokenise, where no
  // token-producer says who does.
  void take_tokenizer(PluginConfig& config) {
    auto* indexer = config.parameters.if_contains("indexerConfig");
    if (!indexer || !indexer->is_object()) return;
    auto* pool = indexer->get_object().if_contains("tokenizersPoolConfig");
    if (!pool) return;
    const auto* model = pool->is_object() ? pool->get_object().if_contains("modelName") : nullptr;
    if (!config_.tokens && model && model->is_string())
      config_.tokens = RenderSource{.address = std::nullopt, .model = std::string(model->get_string())};
    indexer->get_object().erase("tokenizersPoolConfig");
  }

  // A reference to a plugin of this kind.
  Result<> check_reference(const json::object& holder, const std::string& where, SetupKind kind,
                           std::string_view other_field = {}) {
    Parameters fields(holder, where);
    std::string name;
    fields.read("pluginRef", name);
    if (!other_field.empty()) fields.get(other_field);
    TRY_VOID(fields.done());
    const auto known = std::ranges::find(setups_, name, &Setup::name);
    if (known == setups_.end() || known->kind != kind)
      return invalid(where + ".pluginRef", "there is no such plugin {} here", quoted_text(name));
    return {};
  }

  Result<> read_extractor(const json::object& extractor, const std::string& where) {
    return check_reference(extractor, where, SetupKind::extractor);
  }

  Result<> read_source(const json::object& source, const std::string& where) {
    TRY_VOID(check_reference(source, where, SetupKind::source, "extractors"));
    const std::string name(source.at("pluginRef").as_string());
    reads_metrics_ |= std::ranges::find(setups_, name, &Setup::name)->type == "metrics-data-source";
    const auto* extractors = source.if_contains("extractors");
    return extractors ? each(*extractors, where + ".extractors", &Reader::read_extractor) : Result<>();
  }

  // Parsers that are named have no fallback, where passthrough-parser is not among them.
  Result<> read_request_handler(const json::value& handler) {
    if (!handler.is_object()) return invalid("requestHandler", "must be an object");
    Parameters fields(handler.get_object(), "requestHandler");
    const auto* parsers = fields.get("parsers");
    TRY_VOID(fields.done());
    if (!parsers) return {};
    config_.parsers = kNoParsers;
    return each(*parsers, "requestHandler.parsers", &Reader::read_parser);
  }

  // Deprecated: one parser, beside which requestHandler's count.
  Result<> read_old_parser(const json::value& parser) {
    if (!parser.is_object()) return invalid("parser", "must be an object");
    config_.parsers = kNoParsers;
    return read_parser(parser.get_object(), "parser");
  }

  Result<> read_parser(const json::object& parser, const std::string& where) {
    TRY_VOID(check_reference(parser, where, SetupKind::parser));
    const std::string name(parser.at("pluginRef").as_string());
    const std::string& type = std::ranges::find(setups_, name, &Setup::name)->type;
    config_.parsers.openai |= type == "openai-parser";
    config_.parsers.anthropic |= type == "anthropic-parser";
    config_.parsers.passthrough |= type == "passthrough-parser";
    config_.parsers.vllm |= type == "vllmhttp-parser";
    config_.parsers.sglang |= type == "sglanghttp-parser";
    return {};
  }

  Result<> read_data_layer(const json::value& layer) {
    if (!layer.is_object()) return invalid("dataLayer", "must be an object");
    Parameters fields(layer.get_object(), "dataLayer");
    bool inject = true;
    fields.read("injectDefaults", inject);
    const auto* sources = fields.get("sources");
    const auto* discovery = fields.get("discovery");
    for (const char* field : {"peerDiscovery", "crossReplicaSyncerPluginRef", "crossReplicaSyncInterval"})
      if (fields.get(field))
        fields.fail(field,
                    "is not supported: each picker knows what it has sent itself and what metrics say");
    TRY_VOID(fields.done());
    if (sources) TRY_VOID(each(*sources, "dataLayer.sources", &Reader::read_source));
    if (!inject && !reads_metrics_)
      return invalid(
          "dataLayer.injectDefaults",
          "must be true where dataLayer.sources names no metrics-data-source: metrics are always read");
    if (!discovery) return {};
    if (!discovery->is_object()) return invalid("dataLayer.discovery", "must be an object");
    discovery_chosen_ = true;
    std::string where = "dataLayer.discovery";
    const auto* endpoints = discovery->get_object().if_contains("endpoints");  // llm-d.ai/v1
    if (!endpoints) return check_reference(discovery->get_object(), where, SetupKind::discovery);
    Parameters by_kind(discovery->get_object(), where);
    by_kind.get("endpoints");
    TRY_VOID(by_kind.done());
    where += ".endpoints";
    if (!endpoints->is_object()) return invalid(where, "must be an object");
    return check_reference(endpoints->get_object(), where, SetupKind::discovery);
  }

  Result<> read_step(const json::object& step, const std::string& where) {
    Parameters fields(step, where);
    StepConfig config;
    fields.read("pluginRef", config.plugin);
    fields.read("weight", config.weight, 0, std::numeric_limits<std::int32_t>::max());
    TRY_VOID(fields.done());
    if (is_no_step(config.plugin)) return {};
    const auto is_row = [&](const PluginRow& row) { return row.type == config.plugin; };
    const auto is_declared = [&](const PluginConfig& plugin) { return name_of(plugin) == config.plugin; };
    if (std::ranges::none_of(config_.pipeline.plugins, is_declared) &&
        std::ranges::any_of(plugin_table(), is_row))
      config_.pipeline.plugins.push_back({.type = config.plugin});  // one that needs no parameters
    profile_->push_back(std::move(config));
    return {};
  }

  // Producers and parsers work for every profile, whether a profile names them or not.
  bool is_no_step(const std::string& name) const {
    const auto setup = std::ranges::find(setups_, name, &Setup::name);
    if (setup != setups_.end() && (setup->kind == SetupKind::producer || setup->kind == SetupKind::parser))
      return true;
    return std::ranges::any_of(config_.pipeline.plugins, [&](const PluginConfig& plugin) {
      return name_of(plugin) == name &&
             std::ranges::any_of(kNoSteps, [&](auto end) { return plugin.type.ends_with(end); });
    });
  }

  Result<> read_profile(const json::object& profile, const std::string& where) {
    Parameters fields(profile, where);
    std::string name;
    fields.read("name", name);
    const auto* plugins = fields.get("plugins");
    TRY_VOID(fields.done());
    const auto [place, fresh] = profiles_.try_emplace(name);
    if (!fresh) return invalid(where + ".name", "there is a profile {} already", quoted_text(name));
    profile_ = &place->second;
    return plugins ? each(*plugins, where + ".plugins", &Reader::read_step) : Result<>();
  }

  const bool experimental_;
  EndpointPickerConfig config_;
  std::vector<Setup> setups_;
  FlowControlConfig flow_;
  bool flow_enabled_ = false;
  PrefillConfig prefill_;
  std::map<std::string, std::vector<StepConfig>, std::less<>> profiles_;
  std::vector<StepConfig>* profile_ = nullptr;        // that is being read
  std::optional<std::string> precise_producer_ = {};  // the name of the file's
  bool discovery_chosen_ = false;
  bool reads_metrics_ = false;
};

}  // namespace

// llm-d's default (queue-scorer x2, kv-cache-utilization-scorer x2, prefix-cache-scorer x3) knows load from
// metrics alone: between two reads of them a shared prefix draws every request to one endpoint.
EndpointPickerConfig::EndpointPickerConfig() : pipeline(find_policy("kv_aware")->pipeline({})) {}

Result<EndpointPickerConfig> parse_endpoint_picker_config(const std::string& yaml, bool experimental) {
  TRY(const json::value file, parse_yaml(yaml, "config"));
  if (file.is_null()) return EndpointPickerConfig();
  if (!file.is_object()) return invalid("config", "must be an object");
  TRY(EndpointPickerConfig config, Reader(experimental).read(file.get_object()));
  TRY_VOID(Pipeline::make(config.pipeline));  // so that every mistake shows here
  return config;
}

}  // namespace octavo::fleet
