#include "local/options_json.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/edit_distance.h"
#include "base/log.h"
#include "local/engine_flags.h"
#include "local/flag_table.h"
#include "local/kv_environment.h"
#include "local/lmcache_settings.h"
#include "local/profiler_flag.h"
#include "local/runtime_flags.h"
#include "local/share_host.h"
#include "local/vllm_flags.h"

namespace octavo {
namespace {

constexpr const char* kGroup = "Bindings";  // does not appear in the help

constexpr FlagRow<RuntimeOptions> kOwnFlags[] = {
    {"--enable-sleep-mode", flag::to<&RuntimeOptions::sleep_mode>},
};

// Options of vLLM's LLM and AsyncLLM that only have an effect in a server.
constexpr std::string_view kOfServers[] = {"--disable-log-stats", "--enable-log-requests", "--max-log-len",
                                           "--stream-interval",   "--shutdown-timeout",    "--log-level"};

std::string flag_of(std::string_view name) {
  std::string flag = "--" + std::string(name);
  std::ranges::replace(flag, '_', '-');
  return flag;
}

std::string name_of(std::string_view flag) {
  std::string name(flag.substr(2));
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string text_of(const boost::json::value& value) {
  return value.is_string() ? std::string(value.get_string()) : boost::json::serialize(value);
}

// Moves a field into the JSON option that contains it: spec_method becomes speculative_config.method.
// LMCache's settings become a part of kv_transfer_config.
Result<boost::json::object> nested(const boost::json::object& fields, const hub::Environment& environment) {
  boost::json::object out;
  for (const auto& [name, value] : fields) {
    const VllmFlag* known = find_vllm_flag(flag_of(name));
    if (value.is_null() || known == nullptr || known->stands_for.empty()) continue;
    const std::size_t dot = known->stands_for.find('.');
    const std::string whole = name_of(known->stands_for.substr(0, dot));
    boost::json::value& object = out[whole];
    if (const auto* given = fields.if_contains(whole); object.is_null() && given != nullptr) object = *given;
    if (object.is_null()) object.emplace_object();
    if (!object.is_object())
      return invalid(std::string_view(name), "{} must be a dictionary or be absent", whole);
    object.get_object()[known->stands_for.substr(dot + 1)] = value;
  }
  for (const auto& [name, value] : fields) {
    const VllmFlag* known = find_vllm_flag(flag_of(name));
    if (!value.is_null() && !out.contains(name) && (known == nullptr || known->stands_for.empty()))
      out[name] = value;
  }
  if (boost::json::value* transfer = out.if_contains("kv_transfer_config")) {
    TRY(*transfer, with_lmcache_settings(text_of(*transfer), environment));
  }
  return out;
}

std::unexpected<Error> unknown(std::string_view name, const CLI::App& flags) {
  std::vector<std::string> names;
  for (const CLI::Option* option : flags.get_options())
    names.push_back(name_of("--" + option->get_single_name()));
  for (const VllmFlag& known : vllm_flags()) names.push_back(name_of(known.name));
  const std::string_view meant = meant_name(name, {names.begin(), names.end()});
  if (meant.empty()) return invalid(name, "is not the name of an option");
  return invalid(name, "is not the name of an option; did you mean {}?", meant);
}

// Checks an option of vLLM that Octavo does not have. The errors are those of the command line.
Result<> check_unused(std::string_view name, const boost::json::value& value, const CLI::App& flags) {
  const VllmFlag* known = find_vllm_flag(flag_of(name));
  if (known == nullptr) return unknown(name, flags);
  if (known->works && std::ranges::find(kOfServers, known->name) == std::end(kOfServers))
    return field_failure(name, ErrorCode::unsupported,
                         "is an option of `octavo serve`, and this program has no server: remove it");
  if (known->works) return {};
  const boost::json::array values = value.is_array() ? value.get_array() : boost::json::array{value};
  for (const boost::json::value& one : values)
    if (Result<> harmless = check_harmless(*known, text_of(one)); !harmless) {
      harmless.error().field = name;
      return harmless;
    }
  if (!values.empty() && value != false && value != boost::json::object())
    log_info("{} has no effect: {}", name, known->reason);
  return {};
}

// Converts a field to arguments of the command line.
Result<> add_words(std::string_view name, const boost::json::value& value, const CLI::App& flags,
                   std::vector<std::string>& words) {
  const std::string flag = flag_of(name);
  const CLI::Option* known = flags.get_option_no_throw(flag);
  if (!known) return check_unused(name, value, flags);
  const bool takes_value = known->get_expected_min() > 0;
  if (takes_value == value.is_bool())
    return invalid(name, "{}",
                   takes_value ? "needs a value other than true or false" : "must be true or false");
  if (takes_value && value.is_array() && known->get_expected_max() > 1) {
    if (!value.get_array().empty()) words.push_back(flag);
    for (const boost::json::value& one : value.get_array()) words.push_back(text_of(one));
  } else {
    words.push_back(flag + "=" + text_of(value));
  }
  return {};
}

void add_all_flags(CLI::App& flags, RuntimeCommand& command, const hub::Environment& environment) {
  RuntimeOptions& options = command.runtime;
  add_engine_flags(flags, options.engine);
  add_hub_flags(flags, options.hub, environment);
  add_runtime_flags(flags, command);
  add_profiler_flag(flags, options.serve, kGroup);
  add_flags(flags, options, kGroup, kOwnFlags);
}

// Sets the command line of engine processes: the program `octavo` with the same flags.
Result<> take_processes(RuntimeOptions& options, const std::vector<std::string>& words) {
  const EngineOptions& engine = options.engine;
  if (engine.parallel.nodes.rank > 0)
    return invalid("node_rank", "must be 0, got {}: run octavo serve --headless on the other hosts",
                   engine.parallel.nodes.rank);
  if (engine.parallel.rank_layout().size() * engine.parallel.data_parallel_size == 1 &&
      options.engines.elsewhere == 0)
    return {};
  TRY(std::string program, octavo_program());
  options.program.path = std::move(program);
  options.program.command = {"octavo", "serve"};
  options.program.command.insert(options.program.command.end(), words.begin(), words.end());
  if (!engine.device.processors.empty())
    options.program.command.insert(options.program.command.end(),
                                   {kProcessorsFlag, engine.device.processors});
  options.program.command.emplace_back(kRunEngineFlag);
  return {};
}

}  // namespace

Result<RuntimeOptions> runtime_options(const boost::json::object& fields,
                                       const hub::Environment& environment) {
  RuntimeCommand command;
  CLI::App flags;
  add_all_flags(flags, command, environment);
  TRY(const boost::json::object given, nested(fields, environment));
  std::vector<std::string> words;
  for (const auto& [name, value] : given) TRY_VOID(add_words(name, value, flags, words));
  try {
    // CLI11 expects the arguments in reverse order.
    flags.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return invalid("", "{}", error.what());
  }
  if (command.data_parallel.elastic)
    return field_failure("enable_elastic_ep", ErrorCode::unsupported,
                         "is an option of `octavo serve` only: remove it");
  TRY_VOID(take_data_parallel(command.data_parallel, false, command.runtime));
  TRY_VOID(take_kv_environment(command, environment));
  if (!command.otlp_traces_endpoint.empty()) {
    const std::string service = environment("OTEL_SERVICE_NAME");
    TRY(command.runtime.serve.observe.tracer,
        Tracer::start(command.otlp_traces_endpoint, service.empty() ? "octavo" : service,
                      environment("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")));
  }
  TRY_VOID(take_processors(command.runtime.engine, {}, environment));
  TRY_VOID(take_processes(command.runtime, words));
  return std::move(command.runtime);
}

boost::json::array option_list() {
  RuntimeCommand command;
  CLI::App flags;
  add_all_flags(flags, command, [](const char*) { return std::string(); });
  boost::json::array list;
  const auto add = [&](std::string_view flag, bool is_switch, bool many, std::string_view given,
                       std::string_view help) {
    const VllmFlag* of_vllm = find_vllm_flag(flag);
    list.push_back({{"name", name_of(flag)},
                    {"short", of_vllm == nullptr ? std::string_view() : of_vllm->shorthand},
                    {"switch", is_switch},
                    {"many", many},
                    {"default", given},
                    {"help", help}});
  };
  for (const CLI::Option* option : flags.get_options())
    if (!option->get_group().empty() && option->get_single_name() != "help")
      add("--" + option->get_single_name(), option->get_expected_max() == 0, option->get_expected_max() > 1,
          option->get_default_str(), option->get_description());
  for (const VllmFlag& flag : vllm_flags())
    if (!flag.works && flags.get_option_no_throw(std::string(flag.name)) == nullptr)
      add(flag.name, flag.takes == Takes::nothing, flag.takes == Takes::values, "", flag.reason);
  return list;
}

}  // namespace octavo
