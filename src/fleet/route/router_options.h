// Options of `octavo route`, with the names and defaults of SGLang's launch_router where it has them.
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
  int attempts_max = 5;  // the first one included
  int initial_backoff_ms = 50;
  int max_backoff_ms = 30'000;
  double backoff_multiplier = 1.5;
  double jitter = 0.2;  // share of a backoff that is drawn at random
  double budget = 0.2;  // retries after refusals, as a share of the requests; ten a second are free
};

// A list of workers that changes.
struct DiscoveredWorkers {
  std::optional<Role> role = {};  // of all its workers; if unset, each names its own
  EndpointSourceOptions from = {};
  EventPorts event_ports = {};  // for workers that name no event address
};

// Disaggregated prefill: separate pools of prefill and decode workers.
struct DisaggregationOptions {
  bool enabled = false;
  std::vector<std::string> prefill_urls = {};
  std::vector<int> bootstrap_ports = {};  // of prefill_urls, of SGLang's engines; 0 or none left: no port
  std::vector<std::string> decode_urls = {};
  std::string prefill_policy = {};  // "": as RouterOptions::policy
  std::string decode_policy = {};
  int prefill_timeout_ms = 60'000;  // of a prompt at a prefill worker
  int max_local_length = 0;  // uncached tokens of a prompt that a decode worker computes itself, at most
  bool enforced = false;     // a prompt that no prefill worker computes is refused
};

struct TraceOptions {
  std::vector<std::string> request_id_headers = {};  // that name a request beside X-Request-Id
  std::shared_ptr<Tracer> tracer = {};               // null: no spans
};

struct RouterOptions {
  std::vector<std::string> worker_urls = {};
  std::vector<DiscoveredWorkers> discovered = {};  // in addition
  DisaggregationOptions pd = {};
  // Address of each worker's KV cache events, see read_kv_events(); empty if no worker publishes them.
  std::vector<std::string> kv_events = {};
  std::shared_ptr<const Tokenizer> tokenizer = {};  // of the workers' model; null: prompts are text
  PeerOptions peers = {};                           // other routers of the same workers
  std::optional<http::Url> warm_from = {};          // a router to request the index of held blocks from
  std::string policy = "kv_aware";
  PolicyOptions policy_options = {};
  RetryOptions retry = {};
  int slow_start_secs = 0;  // time in which a new worker's share rises; 0: at once
  int hedge_after_ms = 0;   // wait for an answer's head before a second worker gets the request; 0: off
  int migration_limit = 0;  // times that a stream may continue at another replica when its own fails
  BreakerOptions breaker = {};
  ProbeOptions probes = {};
  std::string health_check_endpoint = "/health";
  int health_check_interval_ms = 2'000;
  int health_check_timeout_ms = 3'000;
  int startup_check_interval_ms = 500;  // while an endpoint has not answered a probe yet, or is unhealthy
  int metrics_interval_ms = 1'000;
  int request_timeout_ms = 1'800'000;  // of a request with all its attempts
  // Wait for a first byte from a worker that reports no load; then it counts as a worker without requests.
  // The wait is longer for long prompts and for answers that are not streamed.
  int blind_wait_ms = 10'000;
  int max_concurrent_requests = -1;    // -1: any number
  QueueOptions queue = {};
  bool page = true;  // a web page at `/`
  TraceOptions trace = {};
  std::vector<std::string> api_keys = {};
  std::vector<TenantOptions> tenants = {};  // further clients of the router, with limits
  http::ServerOptions http = {};
  http::ClientTlsOptions worker_tls = {};  // of workers at https://
};

}  // namespace octavo::fleet
