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
#include "fleet/pick/old_config.h"
#include "fleet/pick/prefill_config.h"
#include "fleet/pick/setup_table.h"
#include "fleet/pick/unsupported_plugins.h"
#include "yaml/yaml.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

constexpr std::array<std::string_view, 5> kApiVersions{
    "llm-d.ai/v1", "llm-d.ai/v1alpha1", "inference.networking.x-k8s.io/v1alpha1",
    // API versions in guides of the Gateway API Inference Extension.
    "config.x-k8s.io/v1alpha1", "config.apix.gateway-api-inference-extension.sigs.k8s.io/v1alpha1"};
constexpr std::string_view kKind = "EndpointPickerConfig";
constexpr std::string_view kPrecise = "precise-prefix-cache-producer";
// deprecated plugin that is both producer and scorer
constexpr std::string_view kPreciseScorer = "precise-prefix-cache-scorer";
constexpr std::string_view kPrefixScorer = "prefix-cache-scorer";
// Feature gates of older versions. They have no effect, because their features are always on or always off.
constexpr std::array<std::string_view, 4> kOldGates{"dataLayer", "enableLegacyMetrics",
                                                    "haPopulateNonLeaderDatastore", "prepareDataPlugins"};
// suffixes of plugin types that are not steps
constexpr std::array<std::string_view, 4> kNoSteps{"-producer", "-extractor", "-admitter", "-identity"};

constexpr Parsers kNoParsers{
    .openai = false, .anthropic = false, .vllm = false, .vllm_grpc = false, .passthrough = false};

bool is_alpha(std::string_view type) {
  if (const PluginRow* row = find_plugin(type)) return row->stability == Stability::alpha;
  if (const SetupRow* row = find_setup(type)) return row->stability == Stability::alpha;
  return FlowControlConfig::is_alpha(type);
}

// Parses a boolean like Go's ParseBool, and "" as true. Returns nullopt if the text is invalid.
std::optional<bool> gate_value(std::string_view text) {
  for (const std::string_view yes : {"", "1", "t", "T", "true", "TRUE", "True"})
    if (text == yes) return true;
  for (const std::string_view no : {"0", "f", "F", "false", "FALSE", "False"})
    if (text == no) return false;
  return std::nullopt;
}

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
    if (plugins) TRY_VOID(each(*plugins, "plugins", &Reader::read_plugin));
    if (data_layer) TRY_VOID(read_data_layer(*data_layer));
    if (parser) TRY_VOID(read_old_parser(*parser));
    if (handler) TRY_VOID(read_request_handler(*handler));
    if (detector) TRY_VOID(flow_.read_old_detector(*detector));
    if (flow_control) TRY_VOID(flow_.read_section(*flow_control));
    if (flow_enabled_) config_.flow = flow_.options();
    config_.shedding = flow_.options().detector;
    if (config_.discovery && !discovery_chosen_) config_.discovery.reset();
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

  Result<> each(const json::value& list, const std::string& where,
                Result<> (Reader::*read_item)(const json::object&, const std::string&)) {
    if (!list.is_array()) return invalid(where, "must be a list");
    for (std::size_t i = 0; i < list.get_array().size(); ++i) {
      const json::value& item = list.get_array()[i];
      const std::string path = fmt::format("{}[{}]", where, i);
      if (!item.is_object()) return invalid(path, "must be an object");
      TRY_VOID((this->*read_item)(item.get_object(), path));
    }
    return {};
  }

  Result<> read_gates(const json::value& gates) {
    if (!gates.is_array()) return invalid("featureGates", "must be a list");
    for (std::size_t i = 0; i < gates.get_array().size(); ++i) {
      const json::value& gate = gates.get_array()[i];
      const std::string_view text =
          gate.is_string() ? std::string_view(gate.get_string()) : std::string_view();
      const std::size_t equals = std::min(text.find('='), text.size());
      const std::string_view name = text.substr(0, equals);
      const auto on = gate_value(text.substr(std::min(equals + 1, text.size())));
      const bool known = name == "flowControl" || std::ranges::find(kOldGates, name) != kOldGates.end();
      if (!on || (*on && !known))
        return invalid(fmt::format("featureGates[{}]", i),
                       "{} is not known: must be flowControl, or be turned off (\"name=false\")",
                       quoted_text(text));
      if (name == "flowControl") flow_enabled_ = *on;
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
    if (!experimental_ && is_alpha(config.type))
      return invalid(
          where + ".type",
          "{} has Alpha stability level, but command line flag --allow-experimental-plugins is not set",
          quoted_text(config.type));
    Parameters parameters(config.parameters, where + ".parameters");
    if (flow_.read_plugin(name, config.type, parameters)) {
      // a detector can also be used as a filter
      if (config.type.ends_with("-detector")) config_.pipeline.plugins.push_back(config);
      return parameters.done();
    }
    if (const SetupRow* row = find_setup(config.type)) {
      SetupTarget target{.name = name, .config = config_, .prefill = prefill_};
      row->read(parameters, target);
      setups_.push_back({name, config.type, row->kind});
      return parameters.done();
    }
    if (!find_plugin(config.type)) return unknown_plugin(where + ".type", config.type, setup_types());
    const bool precise = config.type == kPrecise || config.type == kPreciseScorer;
    if (precise) TRY_VOID(read_precise(config, where + ".parameters"));
    if (precise || config.type == kPrefixScorer || config.type.ends_with("-producer") ||
        config.type.ends_with("-extractor"))
      setups_.push_back({name, config.type, SetupKind::extractor});
    config_.pipeline.plugins.push_back(std::move(config));
    return {};
  }

  // Splits the parameters between the source of KV cache events and the plugin.
  Result<> read_precise(PluginConfig& config, const std::string& where) {
    config_.events.emplace();
    if (!config_.models)
      // the picker must know the adapters' names, because the keys of their blocks contain them
      config_.models = kModelsPage;
    const auto* section = config.parameters.if_contains("kvEventsConfig");
    if (!section) return {};
    if (!section->is_object()) return invalid(where + ".kvEventsConfig", "must be an object");
    Parameters fields(section->get_object(), where + ".kvEventsConfig");
    read_cache_events(fields, *config_.events);
    TRY_VOID(fields.done());
    config.parameters.erase("kvEventsConfig");
    return {};
  }

  Result<> check_reference(const json::object& holder, const std::string& where, SetupKind kind,
                           std::string_view other_field = {}) {
    Parameters fields(holder, where);
    std::string name;
    fields.read("pluginRef", name);
    if (!other_field.empty()) fields.get(other_field);
    TRY_VOID(fields.done());
    const auto known = std::ranges::find(setups_, name, &Setup::name);
    if (known == setups_.end() || known->kind != kind)
      return invalid(where + ".pluginRef", "no plugin of this type has the name {}", quoted_text(name));
    return {};
  }

  Result<> read_extractor(const json::object& extractor, const std::string& where) {
    return check_reference(extractor, where, SetupKind::extractor);
  }

  Result<> read_source(const json::object& source, const std::string& where) {
    TRY_VOID(check_reference(source, where, SetupKind::source, "extractors"));
    const std::string name(source.at("pluginRef").as_string());
    names_metrics_ |= std::ranges::find(setups_, name, &Setup::name)->type == "metrics-data-source";
    const auto* extractors = source.if_contains("extractors");
    return extractors ? each(*extractors, where + ".extractors", &Reader::read_extractor) : Result<>();
  }

  // If the handler names parsers, requests of all other APIs are refused unless passthrough-parser is
  // named.
  Result<> read_request_handler(const json::value& handler) {
    if (!handler.is_object()) return invalid("requestHandler", "must be an object");
    Parameters fields(handler.get_object(), "requestHandler");
    const auto* parsers = fields.get("parsers");
    TRY_VOID(fields.done());
    if (!parsers) return {};
    disable_default_parsers();
    return each(*parsers, "requestHandler.parsers", &Reader::read_parser);
  }

  // Reads the deprecated field `parser`. If requestHandler names parsers, they replace this parser.
  Result<> read_old_parser(const json::value& parser) {
    if (!parser.is_object()) return invalid("parser", "must be an object");
    disable_default_parsers();
    return read_parser(parser.get_object(), "parser");
  }

  void disable_default_parsers() {
    if (!std::exchange(parsers_chosen_, true)) config_.parsers = kNoParsers;
  }

  Result<> read_parser(const json::object& parser, const std::string& where) {
    TRY_VOID(check_reference(parser, where, SetupKind::parser));
    const std::string name(parser.at("pluginRef").as_string());
    const std::string& type = std::ranges::find(setups_, name, &Setup::name)->type;
    config_.parsers.openai |= type == "openai-parser";
    config_.parsers.anthropic |= type == "anthropic-parser";
    config_.parsers.passthrough |= type == "passthrough-parser";
    config_.parsers.vllm |= type == "vllmhttp-parser";
    config_.parsers.vllm_grpc |= type == "vllmgrpc-parser";
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
                    "is not supported, because each picker counts the requests that it sent and reads the "
                    "endpoints' metrics");
    TRY_VOID(fields.done());
    if (sources) TRY_VOID(each(*sources, "dataLayer.sources", &Reader::read_source));
    config_.reads_metrics = inject || names_metrics_;
    if (!config_.reads_metrics)
      log_info(
          "the configuration has no metrics-data-source, so the picker does not read the metrics of "
          "endpoints");
    if (!discovery) return {};
    if (!discovery->is_object()) return invalid("dataLayer.discovery", "must be an object");
    discovery_chosen_ = true;
    std::string where = "dataLayer.discovery";
    // In llm-d.ai/v1, the reference is in the field `endpoints`.
    const auto* endpoints = discovery->get_object().if_contains("endpoints");
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
      // a plugin without parameters may be missing in the list of plugins
      config_.pipeline.plugins.push_back({.type = config.plugin});
    profile_->push_back(std::move(config));
    return {};
  }

  // Returns whether the plugin is a producer or parser. These work for all profiles, even if only one
  // profile names them.
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
    const auto [path, fresh] = profiles_.try_emplace(name);
    if (!fresh) return invalid(where + ".name", "the profile {} already exists", quoted_text(name));
    profile_ = &path->second;
    return plugins ? each(*plugins, where + ".plugins", &Reader::read_step) : Result<>();
  }

  const bool experimental_;
  EndpointPickerConfig config_;
  std::vector<Setup> setups_;
  FlowControlConfig flow_;
  bool flow_enabled_ = false;
  PrefillConfig prefill_;
  std::map<std::string, std::vector<StepConfig>, std::less<>> profiles_;
  std::vector<StepConfig>* profile_ = nullptr;  // profile that the current step belongs to
  bool discovery_chosen_ = false;
  bool parsers_chosen_ = false;  // the configuration names parsers
  bool names_metrics_ = false;  // dataLayer.sources names a source of metrics
};

}  // namespace

// llm-d's default (queue-scorer x2, kv-cache-utilization-scorer x2, prefix-cache-scorer x3) is not used,
// because it reads the load only from metrics. Between two readings, it would send all requests with the same
// prefix to one endpoint.
EndpointPickerConfig::EndpointPickerConfig() : pipeline(find_policy("kv_aware")->pipeline({})) {}

Result<EndpointPickerConfig> parse_endpoint_picker_config(const std::string& yaml, bool experimental) {
  TRY(json::value file, parse_yaml(yaml, "config"));
  if (file.is_null()) return EndpointPickerConfig();
  if (!file.is_object()) return invalid("config", "must be an object");
  update_old_config(file.get_object());
  TRY(EndpointPickerConfig config, Reader(experimental).read(file.get_object()));
  TRY_VOID(Pipeline::make(config.pipeline));  // reports errors of plugins early
  return config;
}

}  // namespace octavo::fleet
