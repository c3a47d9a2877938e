#include "app/epp_flags.h"

#include <algorithm>
#include <charconv>

#include "base/log.h"
#include "base/quoted_text.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

constexpr const char* kGroup = "llm-d's endpoint picker";

struct MetricFlag {
  const char* name;
  fleet::Figure figure;
};
constexpr MetricFlag kMetrics[] = {{"--cache-info-metric", fleet::Figure::cache_config},
                                   {"--kv-cache-usage-percentage-metric", fleet::Figure::kv_usage},
                                   {"--lora-info-metric", fleet::Figure::adapters},
                                   {"--total-queued-requests-metric", fleet::Figure::waiting},
                                   {"--total-running-requests-metric", fleet::Figure::running}};

// A switch of llm-d without effect here. why: text for the log.
struct SwitchFlag {
  const char* name;
  bool as_here;
  const char* why;
};
constexpr SwitchFlag kSwitches[] = {
    {"--enable-grpc-stream-metrics", false, "llm_d_epp_request_running counts the streams"},
    {"--enable-pprof", false, "there is no profiler in Go's format"},
    {"--health-checking", true, "gRPC health checks are always answered"},
    {"--metrics-endpoint-auth", false, "/metrics needs no token; if necessary, restrict access to its port"},
    {"--tracing", false, "--otlp-traces-endpoint turns traces on"},
    {"--zap-devel", false, "the log has only one format"}};

struct TextFlag {
  const char* name;
  const char* why;
  // true: giving the flag is an error, because the user relies on it for safety
  bool is_refused = false;
  // value that is accepted because it describes what Octavo does
  std::string_view as_here = {};
};
constexpr TextFlag kTexts[] = {
    {"--grpc-max-send-msg-size", "answers can have any size"},
    {"--refresh-prometheus-metrics-interval", "metrics are computed when they are read"},
    {"--tls-cipher-suites",
     "OpenSSL's default ciphers are used: remove the flag, or terminate TLS in front of the picker", true},
    {"--tls-min-version",
     "TLS 1.2 and newer are accepted: remove the flag, or terminate TLS in front of the picker", true,
     "VersionTLS12"},
    {"--zap-encoder", "the log consists of lines of text"},
    {"--zap-stacktrace-level", "the log has no stack traces"},
    {"--zap-time-encoding", "the log has local times in milliseconds"}};

// Deprecated flags for the address of the engines' metrics.
void add_page_flags(CLI::App& command, EppFlags& flags) {
  command
      .add_option("--model-server-metrics-port", flags.page_port,
                  "Deprecated: port of the engines' metrics; 0: the endpoint's own port")
      ->check(number_between(0, 65535))
      ->group(kGroup);
  command
      .add_option("--model-server-metrics-path", flags.page_path, "Deprecated: path of the engines' metrics")
      ->group(kGroup);
  command
      .add_option("--model-server-metrics-scheme", flags.page_scheme,
                  "Deprecated: scheme of the engines' metrics, http or https")
      ->check(CLI::IsMember({"http", "https"}))
      ->group(kGroup);
  command
      .add_flag("--model-server-metrics-https-insecure-skip-verify", flags.page_any_certificate,
                "Deprecated: do not verify the engines' certificates")
      ->group(kGroup);
}

Result<> apply_page_flags(const EppFlags& flags, fleet::PageSource& metrics) {
  if (flags.page_port > 0) metrics.port = flags.page_port;
  if (!flags.page_path.empty()) metrics.path = flags.page_path;
  if (!metrics.path.starts_with('/'))
    return invalid("model-server-metrics-path", "must begin with a slash, got {}", quoted_text(metrics.path));
  if (flags.page_scheme == "https")
    metrics.tls = fleet::TlsSource{.any_certificate = flags.page_any_certificate};
  return {};
}

Result<> set_level(const EppFlags& flags) {
  constexpr int kDebug = 4;  // llm-d's level for debug logs
  int verbosity = 0;
  if (!flags.verbosity.empty()) {
    const std::string text = flags.verbosity.substr(flags.verbosity.starts_with('=') ? 1 : 0);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), verbosity);
    if (error != std::errc() || end != text.data() + text.size())
      return invalid("v", "must be a whole number, got {}", quoted_text(text));
  }
  if (flags.level == "error")
    set_log_level(LogLevel::error);
  else if (flags.level == "debug" || verbosity >= kDebug)
    set_log_level(LogLevel::debug);
  return {};
}

}  // namespace

void add_epp_flags(CLI::App& command, EppFlags& flags) {
  command.add_option("-v,--v", flags.verbosity, "Verbosity of the log; from 4 on, it contains debug lines")
      ->group(kGroup);
  command.add_option("--zap-log-level,--log-level", flags.level, "Level of the log: debug, info or error")
      ->group(kGroup);
  add_page_flags(command, flags);
  for (const MetricFlag& flag : kMetrics)
    command
        .add_option(
            flag.name, flags.metrics[flag.name],
            "Deprecated: name of a metric of the engines, in addition to the names that the picker knows")
        ->group(kGroup);
  for (const SwitchFlag& flag : kSwitches)
    command
        .add_flag_function(
            flag.name, [&flags, name = flag.name](std::int64_t on) { flags.switches[name] = on > 0; },
            fmt::format("No effect: {}", flag.why))
        ->group(kGroup);
  for (const TextFlag& flag : kTexts)
    command
        .add_option(flag.name, flags.texts[flag.name],
                    fmt::format("{}: {}", flag.is_refused ? "Refused" : "No effect", flag.why))
        ->group(kGroup);
}

Result<> apply_epp_flags(const EppFlags& flags, fleet::EndpointPickerConfig& config) {
  TRY_VOID(set_level(flags));
  TRY_VOID(apply_page_flags(flags, config.metrics));
  for (const SwitchFlag& flag : kSwitches)
    if (const auto given = flags.switches.find(flag.name);
        given != flags.switches.end() && given->second != flag.as_here)
      log_warning("{} has no effect: {}", flag.name, flag.why);
  for (const TextFlag& flag : kTexts) {
    const std::string& given = flags.texts.at(flag.name);
    if (given.empty()) continue;
    if (given == flag.as_here) continue;
    if (flag.is_refused) return invalid(std::string_view(flag.name).substr(2), "is not supported: {}", flag.why);
    log_info("{} has no effect: {}", flag.name, flag.why);
  }
  for (const MetricFlag& flag : kMetrics) {
    const std::string& given = flags.metrics.at(flag.name);
    if (given.empty()) continue;
    TRY(fleet::MetricSpec spec, fleet::parse_metric_spec(given, std::string_view(flag.name).substr(2)));
    for (fleet::EngineMetrics* metrics : {&config.engines.any, &config.engines.kinds["vllm"]})
      if (std::ranges::none_of(*metrics, [&](const auto& known) { return known.metric.name == spec.name; }))
        metrics->push_back({.figure = flag.figure, .metric = spec});
  }
  return {};
}

}  // namespace octavo
