#include "app/registration_flags.h"

#include <utility>

#include "app/serve_flags.h"
#include "app/serving.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "base/rank_endpoint.h"
#include "local/flag_table.h"

namespace octavo {
namespace {

constexpr FlagRow<RegistrationFlags> kRegistrationFlags[] = {
    {"--register-etcd", flag::to<&RegistrationFlags::etcd>,
     "URL of an etcd, such as http://127.0.0.1:2379, in which this server registers its address, role, "
     "models, KV cache events, block size and ranks. Routers and pickers read the entry with --worker-etcd"},
    {"--register-etcd-prefix", flag::to<&RegistrationFlags::etcd_prefix>,
     "Prefix of this server's key in etcd"},
    {"--register-router", flag::to<&RegistrationFlags::routers>,
     "URLs of routers, such as http://127.0.0.1:30000. This server registers itself there with POST /workers "
     "and sends its own first --api-key as the router's key"},
    {"--register-host", flag::to<&RegistrationFlags::host>,
     "Host name or address under which other hosts reach this server (default: --host, or the address of the "
     "network interface that leads to the etcd or router)"},
    {"--register-role", flag::to<&RegistrationFlags::role>,
     "Role under which this server registers. auto: prefill or decode if kv_role of --kv-transfer-config is "
     "kv_producer or kv_consumer, both otherwise",
     OneOf{"auto|both|prefill|decode"}},
    {"--register-lease-secs", flag::to<&RegistrationFlags::lease_s>,
     "Seconds after which etcd removes the entry of a server that no longer renews it. The server renews its "
     "entries three times in this period",
     flag::range(2, 3'600)},
};

Result<http::Url> list_url(const std::string& text, std::string_view flag) {
  auto url = http::parse_url(text);
  if (!url || url->target != "/")
    return invalid(std::string(flag), "must be http://host:port or https://host:port, got {}",
                   quoted_text(text));
  return *std::move(url);
}

fleet::Role role_of(const std::string& name, const KvTransferOptions& transfer) {
  if (name == "prefill") return fleet::Role::prefill;
  if (name == "decode") return fleet::Role::decode;
  if (name == "both" || transfer.produces == transfer.consumes) return fleet::Role::both;
  return transfer.produces ? fleet::Role::prefill : fleet::Role::decode;
}

// Returns the address at which subscribers reach a bound endpoint, or "" if it is not reachable. The host of
// a TCP address is "*".
std::string subscribed(const std::string& endpoint, int rank) {
  constexpr std::string_view kTcp = "tcp://";
  if (endpoint.empty()) return "";
  if (!endpoint.starts_with(kTcp)) return rank_endpoint(endpoint, rank);
  const std::string port = endpoint.substr(endpoint.rfind(':'));
  return port == ":0" || port == ":*" ? "" : rank_endpoint("tcp://*" + port, rank);
}

void describe_events(const KvEventOptions& events, int rank, fleet::Endpoint& worker) {
  if (!events.enabled) return;
  if (binds(events.endpoint)) worker.kv_events_endpoint = subscribed(events.endpoint, rank);
  if (worker.kv_events_endpoint.empty())
    return log_warning(
        "registers without KV cache events, because subscribers on other hosts cannot connect to {}",
        events.endpoint);
  worker.kv_replay_endpoint = subscribed(events.replay_endpoint, rank);
}

bool is_any_host(const std::string& host) { return host.empty() || host == "0.0.0.0" || host == "::"; }

}  // namespace

void add_registration_flags(CLI::App& command, RegistrationFlags& flags) {
  add_flags(command, flags, "Registration", kRegistrationFlags);
}

Result<std::optional<RegistrationPlan>> plan_registration(const ServeCommand& c) {
  const RegistrationFlags& flags = c.registration;
  if (flags.etcd.empty() && flags.routers.empty()) return std::nullopt;
  if (!c.http.uds.empty())
    return invalid("uds",
                   "cannot be combined with --register-etcd or --register-router: other hosts can connect "
                   "only to a TCP port");
  RegistrationPlan plan{.options = {.host = flags.host, .lease_s = flags.lease_s}};
  std::string& host = plan.options.host;
  if (host.empty() && !is_any_host(c.http.host)) host = c.http.host;
  if (host.find(':') != std::string::npos && !host.starts_with('[')) host = "[" + host + "]";
  if (!flags.etcd.empty()) {
    TRY(auto url, list_url(flags.etcd, "register-etcd"));
    plan.options.etcd = fleet::EtcdOptions{.url = std::move(url), .prefix = flags.etcd_prefix};
  }
  for (const std::string& router : flags.routers) {
    TRY(plan.options.routers.emplace_back(), list_url(router, "register-router"));
  }
  const std::vector<std::string>& keys = c.runtime.serve.access.api_keys;
  if (!keys.empty()) plan.options.api_key = keys.front();
  plan.worker.role = role_of(flags.role, c.runtime.engine.kv_transfer);
  plan.worker.url = c.http.tls.certfile.empty() ? "http" : "https";
  plan.events = c.runtime.engine.kv_events;
  return plan;
}

std::unique_ptr<fleet::Registration> start_registration(RegistrationPlan plan, const Serving& serving) {
  const EngineInfo engine = serving.runtime->engine->info();
  fleet::Endpoint& worker = plan.worker;
  worker.url += fmt::format("://*:{}", serving.server->port());
  worker.models = serving.runtime->service->options.rules.model_names;
  worker.block_size = engine.block_size;
  worker.ranks = engine.engines;
  describe_events(plan.events, engine.index, worker);
  return std::make_unique<fleet::Registration>(plan.options, worker);
}

}  // namespace octavo
