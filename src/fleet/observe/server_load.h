// Reads the load of a server from its /metrics page, and computes differences between two pages. `octavo
// top` and the planner use it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace octavo::fleet {

// A cumulative histogram bucket: `count` requests took at most `bound` seconds.
struct Bucket {
  double bound = 0;
  double count = 0;
};
using Buckets = std::vector<Bucket>;  // sorted by bound; the last bound is infinite

// Sums over all engines of a server. Counters start at 0 when the server starts.
struct ServerLoad {
  double running = 0, waiting = 0;
  double kv_usage = 0;  // maximum over the engines, 0 to 1
  double prompt_tokens = 0, generation_tokens = 0, finished = 0, preemptions = 0;
  double prefix_queries = 0, prefix_hits = 0;  // tokens
  double sessions = 0, pinned_sessions = 0;
  Buckets first_token = {}, token_gap = {}, time_per_token = {};
};

// Reads the metrics of vLLM and Octavo. A metric that is missing on the page is 0. Returns nullopt if the
// page has no metric of an engine, or a count that is negative, not finite or too large: with 0 in its place,
// a busy server would look idle.
std::optional<ServerLoad> read_server_load(std::string_view page);

// Returns `now` with the counters and buckets of `before` subtracted. Returns `now` if the server has
// restarted.
ServerLoad since(const ServerLoad& before, const ServerLoad& now);

// Returns the sum over the servers; kv_usage is the maximum.
ServerLoad together(const std::vector<ServerLoad>& servers);

// Returns the quantile `q` in seconds, interpolated within its bucket like Prometheus' histogram_quantile.
// Returns a negative number if the histogram is empty.
double quantile(const Buckets& buckets, double q);

}  // namespace octavo::fleet
