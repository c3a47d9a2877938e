// octavo sidecar: proxy beside a decode worker that sends prompts to prefill workers first.
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/listen_flags.h"
#include "app/stop_signals.h"
#include "app/tracing_flag.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/sidecar.h"
#include "http/url.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

struct SidecarCommand {
  fleet::SidecarOptions options;
  std::string decoder_host = "127.0.0.1";
  int decoder_port = 8200;
  std::string retry_backoff = "200ms";
  int shutdown_grace_s = 180;
  std::string traces_endpoint;
};

std::vector<std::string> connector_names() {
  std::vector<std::string> names;
  for (const fleet::Connector& connector : fleet::connectors()) names.emplace_back(connector.name);
  return names;
}

std::string connectors_text() {
  std::string text = "Protocol for the transfer of KV blocks between the two engines";
  for (const fleet::Connector& connector : fleet::connectors())
    text += fmt::format("; {}: {}", connector.name, connector.summary);
  return text;
}

using fleet::SidecarOptions;
SidecarOptions& sidecar_of(SidecarCommand& c) { return c.options; }

constexpr FlagRow<SidecarCommand> kSidecarFlags[] = {
    {"--model-server-host", flag::to<&SidecarCommand::decoder_host>, "Host of the decode engine"},
    {"--model-server-port", flag::to<&SidecarCommand::decoder_port>, "Port of the decode engine",
     flag::range(1, 65'535)},
    {"--kv-connector", flag::to<sidecar_of, &SidecarOptions::connector>, connectors_text,
     OneOfList{connector_names}},
    {"--prefill-max-retries", flag::to<sidecar_of, &SidecarOptions::prefill_retries_max>,
     "Maximum number of retries after a prefill request that ends with 408, 429, 500, 502, 503, 504 or a "
     "lost connection",
     flag::range(0, 100)},
    {"--prefill-retry-backoff", flag::to<&SidecarCommand::retry_backoff>, "Time before each retry"},
    {"--enable-prefiller-sampling", flag::to<sidecar_of, &SidecarOptions::sample_prefillers>,
     "Select a random host of the header x-prefiller-host-port instead of the first host"},
    {"--enable-ssrf-protection", flag::to<sidecar_of, &SidecarOptions::only_allowed>,
     "Accept only hosts of --allowed-prefillers in requests; a request with another host gets status 403"},
    {"--allowed-prefillers", flag::to<sidecar_of, &SidecarOptions::allowed_prefillers>,
     "Prefill hosts that requests may name, each as host:port"},
    {"--bootstrap-port", flag::to<sidecar_of, &SidecarOptions::bootstrap_port>,
     "For sglang and mooncake: bootstrap port of the prefill engines", flag::range(1, 65'535)},
    {"--p2p-connector-port", flag::to<sidecar_of, &SidecarOptions::p2p_port>,
     "For offloading: port at which prefill engines serve KV blocks", flag::range(1, 65'535)},
    {"--request-timeout-secs", flag::seconds<1'000, sidecar_of, &SidecarOptions::request_timeout_ms>,
     "Maximum seconds for each prefill request and for each decode request", flag::range(1, 86'400)},
    {"--prefill-timeout-secs", flag::seconds<1'000, sidecar_of, &SidecarOptions::prefill_timeout_ms>,
     "Maximum seconds for a prefill request; after this time the decode engine computes the prompt",
     flag::range(1, 86'400)},
    {kTracesFlag, flag::to<&SidecarCommand::traces_endpoint>,
     "URL of a collector (OTLP) that gets a span for each request and for each call to an engine: "
     "http://HOST:4318/v1/traces or grpc://HOST:4317"},
};

Result<> run(SidecarCommand& c) {
  StopSignals signals;

  fleet::SidecarOptions& o = c.options;
  o.decoder_url = "http://" + http::host_and_port(c.decoder_host, c.decoder_port);
  constexpr double kHourUs = 3600e6;
  const auto backoff = fleet::duration_us(c.retry_backoff);
  if (!backoff || !(*backoff >= 0 && *backoff <= kHourUs))
    return invalid("prefill-retry-backoff", "must be a duration like 200ms, at most an hour, got {}",
                   quoted_text(c.retry_backoff));
  o.prefill_retry_backoff_ms = static_cast<int>(std::lround(*backoff / 1000));
  TRY(o.tracer, start_tracer(c.traces_endpoint, "octavo-sidecar"));
  const std::string connector = o.connector;
  TRY(const auto sidecar, fleet::Sidecar::start(std::move(o)));
  log_info("{} in front of {} on {}", connector, http::host_and_port(c.decoder_host, c.decoder_port),
           sidecar->address());

  signals.wait();
  log_info("stopping: running requests may take up to {} s to end", c.shutdown_grace_s);
  sidecar->stop(c.shutdown_grace_s * 1000);
  return {};
}

}  // namespace

void add_sidecar(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand(
      "sidecar",
      "Proxy beside a decode worker that sends prompts to prefill workers first (llm-d's sidecar)");
  auto options = std::make_shared<SidecarCommand>();
  add_flags(*command, *options, "Prefill and decode", kSidecarFlags);
  options->options.http.port = 8000;
  add_listen_flags(*command, options->options.http, options->shutdown_grace_s);
  outcome.runs(*command, options, run);
}

}  // namespace octavo
