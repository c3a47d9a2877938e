// Reads a server's load from its /metrics page, and computes the difference between two pages.
#pragma once

#include <string_view>
#include <vector>

namespace octavo::fleet {

// Bucket of a histogram of times: `count` requests took at most `bound` seconds. Cumulative, as on the page.
struct Bucket {
  double bound = 0;
  double count = 0;
};
using Buckets = std::vector<Bucket>;  // sorted by bound; the last bound is infinite

// Sum over all engines of the page. Counters begin with the server's start.
struct ServerLoad {
  double running = 0, waiting = 0;
  double kv_usage = 0;  // of the engine with the highest value, 0 to 1
  double prompt_tokens = 0, generation_tokens = 0, finished = 0, preemptions = 0;
  double prefix_queries = 0, prefix_hits = 0;  // tokens
  Buckets first_token = {}, token_gap = {}, time_per_token = {};
};

// Reads vLLM's metrics; missing ones are 0.
ServerLoad read_server_load(std::string_view page);

// Subtracts counters and buckets of `before` from those of `now`; gauges are those of `now`. After a restart
// of the server, returns the counters of `now`.
ServerLoad since(const ServerLoad& before, const ServerLoad& now);

// Sums over servers; kv_usage is the largest value.
ServerLoad together(const std::vector<ServerLoad>& servers);

// The value that a fraction `q` of the requests did not exceed, interpolated in its bucket like Prometheus'
// histogram_quantile. Negative: no request was counted.
double quantile(const Buckets& buckets, double q);

}  // namespace octavo::fleet
