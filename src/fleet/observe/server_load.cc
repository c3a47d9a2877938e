#include "fleet/observe/server_load.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include "fleet/observe/metric_line.h"

namespace octavo::fleet {
namespace {

constexpr struct {
  std::string_view name;
  double ServerLoad::* value;
} kSums[] = {
    {"vllm:num_requests_running", &ServerLoad::running},
    {"vllm:num_requests_waiting", &ServerLoad::waiting},
    {"vllm:prompt_tokens_total", &ServerLoad::prompt_tokens},
    {"vllm:generation_tokens_total", &ServerLoad::generation_tokens},
    {"vllm:request_success_total", &ServerLoad::finished},
    {"vllm:num_preemptions_total", &ServerLoad::preemptions},
    {"vllm:prefix_cache_queries_total", &ServerLoad::prefix_queries},
    {"vllm:prefix_cache_hits_total", &ServerLoad::prefix_hits},
    {"octavo:sessions", &ServerLoad::sessions},
    {"octavo:sessions_pinned", &ServerLoad::pinned_sessions},
};
constexpr double kExactMax = 0x1p53;  // above it, a double is not an exact count
constexpr double ServerLoad::* kCounters[] = {&ServerLoad::prompt_tokens,  &ServerLoad::generation_tokens,
                                              &ServerLoad::finished,       &ServerLoad::preemptions,
                                              &ServerLoad::prefix_queries, &ServerLoad::prefix_hits};

void add(Buckets& buckets, double bound, double count) {
  const auto at = std::ranges::lower_bound(buckets, bound, {}, &Bucket::bound);
  if (at != buckets.end() && at->bound == bound)
    at->count += count;
  else
    buckets.insert(at, {bound, count});
}

double bound_of(std::string_view text) {
  double bound = std::numeric_limits<double>::infinity();  // stays infinite for the bucket "+Inf"
  std::from_chars(text.data(), text.data() + text.size(), bound);
  return bound;
}

bool is_of_an_engine(std::string_view line) {
  return line.starts_with("vllm:") || line.starts_with("octavo:");
}

// Returns whether the line has one of kSums, even if its value cannot be read.
bool is_sum(std::string_view line) {
  const std::string_view metric = line.substr(0, line.find_first_of("{ "));
  return std::ranges::any_of(kSums, [&](const auto& sum) { return sum.name == metric; });
}

bool is_count(double value) { return value >= 0 && value <= kExactMax; }

Buckets difference(const Buckets& before, const Buckets& now) {
  Buckets out = now;
  for (const Bucket& old : before) add(out, old.bound, -old.count);
  return out;
}

}  // namespace

std::optional<ServerLoad> read_server_load(std::string_view page) {
  ServerLoad load;
  bool has_engine = false;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    const std::string_view text = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    has_engine = has_engine || is_of_an_engine(text);
    const auto line = read_metric(text);
    if (is_sum(text) && !(line && is_count(line->value))) return std::nullopt;
    if (!line) continue;
    for (const auto& [name, value] : kSums)
      if (line->name == name) load.*value += line->value;
    if (line->name == "vllm:kv_cache_usage_perc") load.kv_usage = std::max(load.kv_usage, line->value);
    const auto bucket = [&](Buckets& buckets) {
      add(buckets, bound_of(metric_label(line->labels, "le")), line->value);
    };
    if (line->name == "vllm:time_to_first_token_seconds_bucket") bucket(load.first_token);
    if (line->name == "vllm:inter_token_latency_seconds_bucket") bucket(load.token_gap);
    if (line->name == "vllm:request_time_per_output_token_seconds_bucket") bucket(load.time_per_token);
  }
  return has_engine ? std::optional(std::move(load)) : std::nullopt;
}

ServerLoad since(const ServerLoad& before, const ServerLoad& now) {
  const bool restarted =
      std::ranges::any_of(kCounters, [&](auto counter) { return now.*counter < before.*counter; });
  if (restarted) return now;
  ServerLoad out = now;
  for (const auto counter : kCounters) out.*counter -= before.*counter;
  out.first_token = difference(before.first_token, now.first_token);
  out.token_gap = difference(before.token_gap, now.token_gap);
  out.time_per_token = difference(before.time_per_token, now.time_per_token);
  return out;
}

ServerLoad together(const std::vector<ServerLoad>& servers) {
  ServerLoad all;
  for (const ServerLoad& server : servers) {
    for (const auto& [name, value] : kSums) all.*value += server.*value;
    all.kv_usage = std::max(all.kv_usage, server.kv_usage);
    for (const Bucket& b : server.first_token) add(all.first_token, b.bound, b.count);
    for (const Bucket& b : server.token_gap) add(all.token_gap, b.bound, b.count);
    for (const Bucket& b : server.time_per_token) add(all.time_per_token, b.bound, b.count);
  }
  return all;
}

double quantile(const Buckets& buckets, double q) {
  if (buckets.empty() || buckets.back().count <= 0) return -1;
  const double rank = q * buckets.back().count;
  Bucket below;
  for (const Bucket& b : buckets) {
    if (b.count >= rank && b.bound == std::numeric_limits<double>::infinity()) return below.bound;
    if (b.count >= rank)
      return below.bound + (b.bound - below.bound) * (rank - below.count) / (b.count - below.count);
    below = b;
  }
  return below.bound;
}

}  // namespace octavo::fleet
