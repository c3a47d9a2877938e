// Options of `octavo route`. Name and default are those of SGLang's launch_router if it has the option.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
#include "serve/accounts.h"
#include "trace/tracer.h"

namespace octavo {
class Tokenizer;
}

namespace octavo::fleet {

struct RetryOptions {
  int attempts_max = 5;  // maximum number of attempts, including the first one
  int initial_backoff_ms = 50;
  int max_backoff_ms = 30'000;
  double backoff_multiplier = 1.5;
  double jitter = 0.2;  // random fraction of a backoff, added or subtracted
  // retries after refusals, as a fraction of the requests; ten per second are always allowed
  double budget = 0.2;
  // time without the head of an answer after which a second worker receives the request; 0: never
  int hedge_after_ms = 0;
  int migration_limit = 0;  // maximum number of times that a stream continues at another replica
};

struct HealthOptions {
  BreakerOptions breaker = {};
  ProbeOptions probes = {};
  std::string endpoint = "/health";
  int interval_ms = 2'000;
  int startup_interval_ms = 500;  // interval while an endpoint is unhealthy, or has not answered a probe
  int timeout_ms = 3'000;
};

// A list of workers that may change.
struct DiscoveredWorkers {
  std::optional<Role> role = {};  // role of all workers in the list; nullopt: the list has the roles
  EndpointSourceOptions from = {};
  EventPorts event_ports = {};  // event ports of workers without an event address
};

// Disaggregated prefill: prefill and decode at separate workers.
struct DisaggregationOptions {
  bool enabled = false;
  std::vector<std::string> prefill_urls = {};
  // [prefill_urls] bootstrap ports of SGLang's engines; 0 or missing: no port
  std::vector<int> bootstrap_ports = {};
  std::vector<std::string> decode_urls = {};
  std::string prefill_policy = {};  // "": RouterOptions::policy
  std::string decode_policy = {};
  int prefill_timeout_ms = 60'000;
  int max_local_length = 0;  // maximum number of uncached prompt tokens that a decode worker computes
  bool enforced = false;     // refuse prompts that no prefill worker can compute
};

struct TelemetryOptions {
  // headers with a request's id, in addition to X-Request-Id
  std::vector<std::string> request_id_headers = {};
  std::shared_ptr<Tracer> tracer = {};               // null: no spans
  AccountOptions accounts = {};
};

struct BatchOptions {
  std::string folder = {};                          // "": the router has no files and batches
  std::int64_t bytes_max = std::int64_t{32} << 30;  // maximum bytes of all files and answers
};

struct WorkerOptions {
  std::vector<std::string> urls = {};
  std::vector<DiscoveredWorkers> discovered = {};  // further workers
  // Address of each worker's KV cache events, see read_kv_events(). Empty: no events.
  std::vector<std::string> kv_events = {};
  http::ClientTlsOptions tls = {};
};

struct RouterOptions {
  WorkerOptions workers = {};
  DisaggregationOptions pd = {};
  std::shared_ptr<const Tokenizer> tokenizer = {};  // of the workers' model; null: prompts are not tokenised
  PeerOptions peers = {};                           // other routers of the same workers
  std::optional<http::Url> warm_from = {};          // router from which to copy the index of KV blocks
  std::string policy = "kv_aware";
  PolicyOptions policy_options = {};
  RetryOptions retry = {};
  int slow_start_secs = 0;  // time after which a new worker gets its full share of requests; 0: no ramp
  HealthOptions health = {};
  int metrics_interval_ms = 1'000;
  int request_timeout_ms = 1'800'000;  // timeout of a request with all its attempts
  // Maximum time until the first byte from a worker that reports no load; then the request counts as lost.
  // Longer for long prompts and for answers that are not streamed.
  int blind_wait_ms = 10'000;
  int max_concurrent_requests = -1;  // -1: no limit
  QueueOptions queue = {};
  bool page = true;  // serve the web page at `/`
  TelemetryOptions telemetry = {};
  std::vector<std::string> api_keys = {};
  std::vector<TenantOptions> tenants = {};  // clients with separate keys and limits
  http::ServerOptions http = {};
};

}  // namespace octavo::fleet
