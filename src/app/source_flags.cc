#include "app/source_flags.h"

#include <utility>

#include "base/quoted_text.h"
#include "fleet/discover/srv_records.h"
#include "http/url.h"
#include "local/flag_table.h"

namespace octavo {

namespace {

constexpr FlagRow<SourceFlags> kSourceFlags[] = {
    {"--worker-etcd", flag::to<&SourceFlags::etcd>,
     "URL of an etcd, such as http://127.0.0.1:2379. Each key below --worker-etcd-prefix is a worker; its "
     "value is a URL, or {\"url\": .., \"role\": \"prefill\" or \"decode\", \"models\": [..], \"kv_events\": "
     "\"tcp://host:5557\"}"},
    {"--worker-etcd-prefix", flag::to<&SourceFlags::etcd_prefix>, "Prefix of the keys in --worker-etcd"},
    {"--worker-file", flag::to<&SourceFlags::file>,
     "YAML or JSON file of workers, in the format of llm-d's file-discovery; the program reads it again when "
     "it changes"},
    {"--worker-dns", flag::to<&SourceFlags::dns>,
     "Name and port, as host:port; all addresses of the name are workers (for example of a headless "
     "service)"},
    {"--worker-srv", flag::to<&SourceFlags::srv>,
     "Name of SRV records, such as _http._tcp.replicas.internal; the targets of the records are workers, "
     "with their ports, priorities and weights"},
    {"--worker-srv-server", flag::to<&SourceFlags::srv_server>,
     "Name server for --worker-srv, such as Consul's 127.0.0.1:8600 (default: the system's name server)"},
    {"--worker-dns-interval-secs", flag::to<&SourceFlags::dns_interval_s>,
     "Seconds between two queries for --worker-dns and --worker-srv", flag::range(1, 3600)},
};

constexpr FlagRow<SourceFlags> kEventFlags[] = {
    {"--worker-kv-events-port", flag::to<&SourceFlags::event_ports, &fleet::EventPorts::live>,
     "Port at which workers publish KV cache events, for workers whose entry has no address of events. The "
     "next ports are for the other ranks of the worker. 0: no events",
     flag::range(0, 65535)},
    {"--worker-kv-replay-port", flag::to<&SourceFlags::event_ports, &fleet::EventPorts::replay>,
     "Port at which workers answer requests for past KV cache events; 0: no replays", flag::range(0, 65535)},
};

}  // namespace

void add_source_flags(CLI::App& command, SourceFlags& flags) {
  add_flags(command, flags, "Discovery", kSourceFlags);
}

void add_event_flags(CLI::App& command, SourceFlags& flags) {
  add_flags(command, flags, "Discovery", kEventFlags);
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
    if (!file) return invalid("worker-file", "{}: {}", file.error().field, file.error().message);
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
