// Reads the load of a server from its /metrics page, and subtracts an earlier page.
#pragma once

#include <string_view>
#include <vector>

namespace octavo::fleet {

// A histogram bucket: `count` requests took at most `bound` seconds (cumulative, as on the page).
struct Bucket {
  double bound = 0;
  double count = 0;
};
using Buckets = std::vector<Bucket>;  // sorted by bound; the last bound is infinite

// Sums over all engines of a server. Counters begin at the server's start.
struct ServerLoad {
  double running = 0, waiting = 0;
  double kv_usage = 0;  // maximum over the engines, 0 to 1
  double prompt_tokens = 0, generation_tokens = 0, finished = 0, preemptions = 0;
  double prefix_queries = 0, prefix_hits = 0;  // in tokens
  Buckets first_token = {}, token_gap = {}, time_per_token = {};
};

// Reads vLLM's metrics. Missing metrics are 0.
ServerLoad read_server_load(std::string_view page);

// Returns `now` with the counters and buckets of `before` subtracted. After a restart of the server, returns
// `now`.
ServerLoad since(const ServerLoad& before, const ServerLoad& now);

// Returns the sums over servers, and the maximum of kv_usage.
ServerLoad together(const std::vector<ServerLoad>& servers);

// Returns the quantile `q` in seconds, interpolated in its bucket like Prometheus' histogram_quantile.
// Negative: no request.
double quantile(const Buckets& buckets, double q);

}  // namespace octavo::fleet
