// octavo sidecar
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "app/commands.h"
#include "app/listen_flags.h"
#include "app/stop_signals.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/decide/parameters.h"
#include "fleet/sidecar/connector.h"
#include "fleet/sidecar/sidecar.h"

namespace octavo {
namespace {

struct SidecarCommand {
  fleet::SidecarOptions options;
  std::string decoder_host = "127.0.0.1";
  int decoder_port = 8200;
  std::string retry_backoff = "200ms";
  int request_timeout_s = 1800;
  int prefill_timeout_s = 60;
  int shutdown_grace_s = 180;
};

std::vector<std::string> connector_names() {
  std::vector<std::string> names;
  for (const fleet::Connector& connector : fleet::connectors()) names.emplace_back(connector.name);
  return names;
}

std::string connectors_text() {
  std::string text = "Protocol that connects the two engines";
  for (const fleet::Connector& connector : fleet::connectors())
    text += fmt::format("; {}: {}", connector.name, connector.summary);
  return text;
}

void add_leg_flags(CLI::App& command, SidecarCommand& c) {
  fleet::SidecarOptions& o = c.options;
  const char* group = "Prefill and decode";
  const auto whole = [&](const char* name, int& value, const char* help, int min, int max) {
    command.add_option(name, value, help)->check(CLI::Range(min, max))->capture_default_str()->group(group);
  };
  command.add_option("--model-server-host", c.decoder_host, "Where the engine is that decodes")
      ->capture_default_str()
      ->group(group);
  whole("--model-server-port", c.decoder_port, "Its port", 1, 65'535);
  command.add_option("--kv-connector", o.connector, connectors_text())
      ->check(CLI::IsMember(connector_names()))
      ->capture_default_str()
      ->group(group);
  whole("--prefill-max-retries", o.prefill_retries_max,
        "Further attempts at a prefill that ends with 408, 429, 500, 502, 503, 504 or a lost connection", 0, 100);
  command.add_option("--prefill-retry-backoff", c.retry_backoff, "Wait before each")
      ->capture_default_str()
      ->group(group);
  command
      .add_flag("--enable-prefiller-sampling", o.sample_prefillers,
                "Select a random host of x-prefiller-host-port instead of the first")
      ->group(group);
  command
      .add_flag("--enable-ssrf-protection", o.only_allowed,
                "Only --allowed-prefillers may be named by a request, others get 403")
      ->group(group);
  command.add_option("--allowed-prefillers", o.allowed_prefillers, "Each as host:port")->group(group);
  whole("--bootstrap-port", o.bootstrap_port, "sglang, mooncake: where engines that prefill are met", 1,
        65'535);
  whole("--p2p-connector-port", o.p2p_port, "offloading: where engines that prefill serve blocks", 1, 65'535);
  whole("--request-timeout-secs", c.request_timeout_s, "Longest time for one leg of a request", 1, 86'400);
  whole("--prefill-timeout-secs", c.prefill_timeout_s,
        "Longest time for a prefill that the answer waits for; then the engine that decodes computes the prompt", 1,
        86'400);
}

void add_server_flags(CLI::App& command, SidecarCommand& c) {
  c.options.http.port = 8000;
  add_listen_flags(command, c.options.http, c.shutdown_grace_s);
}

Result<> run(SidecarCommand& c) {
  StopSignals signals;

  fleet::SidecarOptions& o = c.options;
  o.decoder_url = fmt::format("http://{}:{}", c.decoder_host, c.decoder_port);
  o.request_timeout_ms = c.request_timeout_s * 1000;
  o.prefill_timeout_ms = c.prefill_timeout_s * 1000;
  constexpr double kHourUs = 3600e6;
  const auto backoff = fleet::duration_us(c.retry_backoff);
  if (!backoff || !(*backoff >= 0 && *backoff <= kHourUs))
    return invalid("prefill-retry-backoff", "must be a duration like 200ms, at most an hour, got {}",
                   quoted_text(c.retry_backoff));
  o.prefill_retry_backoff_ms = static_cast<int>(std::lround(*backoff / 1000));
  const std::string connector = o.connector;
  TRY(const auto sidecar, fleet::Sidecar::start(std::move(o)));
  log_info("{} in front of {}:{} on {}", connector, c.decoder_host, c.decoder_port, sidecar->address());

  signals.wait();
  log_info("stopping: answers in flight get up to {} s", c.shutdown_grace_s);
  sidecar->stop(c.shutdown_grace_s * 1000);
  return {};
}

}  // namespace

void add_sidecar(CLI::App& program, Outcome& outcome) {
  CLI::App* command = program.add_subcommand(
      "sidecar",
      "Proxy beside a decode worker that sends prompts to prefill workers first (llm-d's sidecar)");
  auto options = std::make_shared<SidecarCommand>();
  add_leg_flags(*command, *options);
  add_server_flags(*command, *options);
  command->callback([options, &outcome] {
    if (const auto ran = run(*options); !ran) outcome.report(ran.error());
  });
}

}  // namespace octavo
