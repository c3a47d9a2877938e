// Options of `octavo route`. If SGLang's launch_router has an option, name and default are the same.
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
  double jitter = 0.2;  // random fraction of a backoff
  double budget = 0.2;  // retries after refusals, as a fraction of the requests; ten per second are always
                        // allowed
  int hedge_after_ms = 0;   // time without an answer's head after which a second worker gets the request; 0:
                            // off
  int migration_limit = 0;  // how often a stream may continue at another replica when its replica fails
};

// Checks of the workers' health.
struct HealthOptions {
  BreakerOptions breaker = {};
  ProbeOptions probes = {};
  std::string endpoint = "/health";
  int interval_ms = 2'000;
  int startup_interval_ms = 500;  // used while an endpoint is unhealthy or has not answered a probe yet
  int timeout_ms = 3'000;
};

// A list of workers that can change.
struct DiscoveredWorkers {
  std::optional<Role> role = {};  // role of all its workers; nullopt: each worker has its own
  EndpointSourceOptions from = {};
  EventPorts event_ports = {};  // event ports of workers that give no event address
};

// Disaggregated prefill: separate prefill and decode workers.
struct DisaggregationOptions {
  bool enabled = false;
  std::vector<std::string> prefill_urls = {};
  std::vector<int> bootstrap_ports = {};  // bootstrap ports of SGLang's engines in prefill_urls; 0 or
                                          // missing: no port
  std::vector<std::string> decode_urls = {};
  std::string prefill_policy = {};  // "": RouterOptions::policy
  std::string decode_policy = {};
  int prefill_timeout_ms = 60'000;  // limit on the time of a prefill request
  int max_local_length = 0;  // maximum number of uncached prompt tokens that a decode worker computes itself
  bool enforced = false;     // refuse prompts that no prefill worker can compute
};

struct TraceOptions {
  std::vector<std::string> request_id_headers = {};  // headers that contain a request's id, in addition to
                                                     // X-Request-Id
  std::shared_ptr<Tracer> tracer = {};               // null: no spans
};

struct BatchOptions {
  std::string folder = {};                          // "": the router keeps no files and batches
  std::int64_t bytes_max = std::int64_t{32} << 30;  // maximum bytes of all files and answers
};

struct WorkerOptions {
  std::vector<std::string> urls = {};
  std::vector<DiscoveredWorkers> discovered = {};  // additional workers
  // Address of each worker's KV cache events, see read_kv_events(). Empty: no worker publishes events.
  std::vector<std::string> kv_events = {};
  http::ClientTlsOptions tls = {};  // for workers with https://
};

struct RouterOptions {
  WorkerOptions workers = {};
  DisaggregationOptions pd = {};
  std::shared_ptr<const Tokenizer> tokenizer = {};  // tokenizer of the workers' model; null: prompts are not
                                                    // tokenised
  PeerOptions peers = {};                           // other routers with the same workers
  std::optional<http::Url> warm_from = {};          // router from which to copy the index of held blocks
  std::string policy = "kv_aware";
  PolicyOptions policy_options = {};
  RetryOptions retry = {};
  int slow_start_secs = 0;  // time in which a new worker's share of requests rises; 0: no rise
  HealthOptions health = {};
  int metrics_interval_ms = 1'000;
  int request_timeout_ms = 1'800'000;  // limit for a request with all its attempts
  // Waiting time for the first byte from a worker that reports no load; after this the request counts as lost
  // there. It is longer for long prompts and for answers that are not streamed.
  int blind_wait_ms = 10'000;
  int max_concurrent_requests = -1;  // -1: no limit
  QueueOptions queue = {};
  bool page = true;  // serve a web page at `/`
  TraceOptions trace = {};
  std::vector<std::string> api_keys = {};
  std::vector<TenantOptions> tenants = {};  // other clients of the router, with their limits
  http::ServerOptions http = {};
};

}  // namespace octavo::fleet
