// Reads a server's load from its /metrics page, and computes the difference between two pages.
#pragma once

#include <string_view>
#include <vector>

namespace octavo::fleet {

// Requests by the time that something took: `count` of them at most `bound` seconds, cumulative as in the
// page.
struct Bucket {
  double bound = 0;
  double count = 0;
};
using Buckets = std::vector<Bucket>;  // by bound, the last one's is infinite

// Sum over all engines of the page. Counters start at the server's start.
struct ServerLoad {
  double running = 0, waiting = 0;
  double kv_usage = 0;  // of the fullest engine, 0 to 1
  double prompt_tokens = 0, generation_tokens = 0, finished = 0, preemptions = 0;
  double prefix_queries = 0, prefix_hits = 0;  // tokens
  Buckets first_token = {}, token_gap = {}, time_per_token = {};
};

// Reads vLLM's metric names; missing metrics are 0.
ServerLoad read_server_load(std::string_view page);

// Counters and buckets of `now` less those of `before`; gauges as in `now`. After a restart, counters
// count from the new start.
ServerLoad since(const ServerLoad& before, const ServerLoad& now);

// The sums over servers; kv_usage is the largest.
ServerLoad together(const std::vector<ServerLoad>& servers);

// The value that a share `q` of the requests did not exceed, interpolated within its bucket as Prometheus'
// histogram_quantile does. Negative: no request was counted.
double quantile(const Buckets& buckets, double q);

}  // namespace octavo::fleet
