#include "app/source_flags.h"

#include <utility>

#include "base/quoted_text.h"
#include "fleet/discover/srv_records.h"
#include "http/url.h"

namespace octavo {

void add_source_flags(CLI::App& command, SourceFlags& flags) {
  const char* group = "Discovery";
  command
      .add_option(
          "--worker-etcd", flags.etcd,
          "An etcd, like http://127.0.0.1:2379, whose keys below --worker-etcd-prefix are workers: the value "
          "is a URL, or {\"url\": .., \"role\": \"prefill\" or \"decode\", \"models\": [..], \"kv_events\": "
          "\"tcp://host:5557\"}")
      ->group(group);
  command.add_option("--worker-etcd-prefix", flags.etcd_prefix, "Prefix of those keys")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--worker-file", flags.file,
                  "A file of workers in YAML or JSON, as llm-d's file-discovery; read again when it changes")
      ->group(group);
  command
      .add_option("--worker-dns", flags.dns,
                  "host:port: all addresses of that name are workers, as of a headless service")
      ->group(group);
  command
      .add_option(
          "--worker-srv", flags.srv,
          "A name like _http._tcp.replicas.internal: the targets of its SRV records are workers, with their "
          "ports, priorities and weights")
      ->group(group);
  command
      .add_option("--worker-srv-server", flags.srv_server,
                  "Name server for --worker-srv, like 127.0.0.1:8600 (Consul's); default: the system's")
      ->group(group);
  command
      .add_option("--worker-dns-interval-secs", flags.dns_interval_s,
                  "Interval between look-ups of --worker-dns and --worker-srv")
      ->check(CLI::Range(1, 3600))
      ->capture_default_str()
      ->group(group);
}

void add_event_flags(CLI::App& command, SourceFlags& flags) {
  const char* group = "Discovery";
  command
      .add_option("--worker-kv-events-port", flags.event_ports.live,
                  "Port at which workers publish their KV cache events, where their list names no address; "
                  "further ranks "
                  "of a host have the next ports; 0: none")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--worker-kv-replay-port", flags.event_ports.replay,
                  "Port of their replay sockets; 0: none")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str()
      ->group(group);
}

Result<std::vector<fleet::EndpointSourceOptions>> read_sources(const SourceFlags& flags) {
  std::vector<fleet::EndpointSourceOptions> sources;
  if (!flags.etcd.empty()) {
    auto url = http::parse_url(flags.etcd);
    if (!url || url->target != "/")
      return invalid("worker-etcd", "must be http://host:port or https://host:port, got {}",
                     quoted_text(flags.etcd));
    sources.push_back(fleet::EtcdOptions{.url = *std::move(url), .prefix = flags.etcd_prefix});
  }
  if (!flags.file.empty()) {
    auto file = fleet::poll_file(flags.file);
    if (!file) return invalid("worker-file", "{}: {}", flags.file, file.error().message);
    sources.push_back(*std::move(file));
  }
  if (!flags.dns.empty()) {
    auto dns = fleet::poll_dns(flags.dns, flags.dns_interval_s * 1000);
    if (!dns) return invalid("worker-dns", "must be host:port, got {}", quoted_text(flags.dns));
    sources.push_back(*std::move(dns));
  }
  if (!flags.srv.empty()) {
    TRY(auto srv, fleet::poll_srv(flags.srv, flags.srv_server, flags.dns_interval_s * 1000));
    sources.push_back(std::move(srv));
  }
  return sources;
}

}  // namespace octavo
