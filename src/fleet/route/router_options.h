// Options of `octavo route`. Names and defaults are those of SGLang's launch_router where it has the
// option.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "accounts/accounts.h"
#include "fleet/decide/policies.h"
#include "fleet/discover/endpoint_source.h"
#include "fleet/discover/event_addresses.h"
#include "fleet/health/endpoint_health.h"
#include "fleet/peers/peer_sync.h"
#include "fleet/route/queue_options.h"
#include "fleet/route/tenants.h"
#include "http/server.h"
#include "http/tls.h"
#include "http/url.h"
#include "trace/tracer.h"

namespace octavo {
class Tokenizer;
}

namespace octavo::fleet {

struct RetryOptions {
  int attempts_max = 5;  // includes the first attempt
  int initial_backoff_ms = 50;
  int max_backoff_ms = 30'000;
  double backoff_multiplier = 1.5;
  double jitter = 0.2;  // random fraction of a backoff, added or subtracted
  // maximum number of retries and hedges, as a fraction of the requests; ten per second are always allowed
  double budget = 0.2;
  // time without response headers after which a second worker also gets the request; 0: never
  int hedge_after_ms = 0;
  int migration_limit = 0;  // maximum number of times that a stream continues at another worker
};

struct HealthOptions {
  BreakerOptions breaker = {};
  ProbeOptions probes = {};
  std::string endpoint = "/health";
  int interval_ms = 2'000;
  int startup_interval_ms = 500;  // probe interval of endpoints that are unhealthy or were never healthy
  int timeout_ms = 3'000;
};

struct DiscoveredWorkers {
  std::optional<Role> role = {};  // role of all workers in the list; nullopt: the list contains the roles
  EndpointSourceOptions from = {};
  EventPorts event_ports = {};  // KV event ports, for workers without an address of KV cache events
};

struct DisaggregationOptions {
  bool enabled = false;
  std::vector<std::string> prefill_urls = {};
  // [prefill_urls] bootstrap ports for SGLang's KV transfer; 0 or missing: no port
  std::vector<int> bootstrap_ports = {};
  std::vector<std::string> decode_urls = {};
  std::string prefill_policy = {};  // "": RouterOptions::policy
  std::string decode_policy = {};
  int prefill_timeout_ms = 60'000;
  int max_local_length = 0;  // a decode worker computes prompts with at most this number of uncached tokens
  bool enforced = false;     // refuse prompts that no prefill worker can compute
};

struct TelemetryOptions {
  // request headers that contain the request's id, in addition to X-Request-Id
  std::vector<std::string> request_id_headers = {};
  std::shared_ptr<Tracer> tracer = {};  // null: tracing is off
  AccountOptions accounts = {};
};

struct BatchOptions {
  std::string folder = {};  // folder of files and batches; "": workers handle files and batches
  std::int64_t bytes_max = std::int64_t{32} << 30;  // maximum size of all files together
};

struct WorkerOptions {
  std::vector<std::string> urls = {};
  std::vector<DiscoveredWorkers> discovered = {};
  // Address of each worker's KV cache events, see read_kv_events(). Empty: no events.
  std::vector<std::string> kv_events = {};
  http::ClientTlsOptions tls = {};
};

struct RouterOptions {
  WorkerOptions workers = {};
  DisaggregationOptions pd = {};
  // the workers' tokenizer; null: prompts are not tokenised
  std::shared_ptr<const Tokenizer> tokenizer = {};
  PeerOptions peers = {};                   // peer routers in front of the same workers
  std::optional<http::Url> warm_from = {};  // peer router whose index of KV blocks is copied at start
  std::string policy = "kv_aware";
  PolicyOptions policy_options = {};
  RetryOptions retry = {};
  // time after which a new worker gets its full share of requests; 0: at once
  int slow_start_secs = 0;
  HealthOptions health = {};
  int metrics_interval_ms = 1'000;
  int request_timeout_ms = 1'800'000;  // timeout of a request, including all attempts
  // Maximum time until the first byte from a worker that reports no load. After this time the request
  // counts as lost. The limit is higher for long prompts and for answers that are not streamed.
  int blind_wait_ms = 10'000;
  int max_concurrent_requests = -1;  // -1: no limit
  QueueOptions queue = {};
  bool page = true;  // serve the web page at `/`
  TelemetryOptions telemetry = {};
  std::vector<std::string> api_keys = {};
  std::vector<TenantOptions> tenants = {};
  http::ServerOptions http = {};
};

}  // namespace octavo::fleet
