#include "fleet/route/route_metrics.h"

#include <utility>

#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {
namespace {

const std::vector<double> kSeconds{.001, .002, .005, .01, .02, .05, .1, .2,  .5,
                                   1,    2,    5,    10,  20,  30,  60, 120, 240};
const std::vector<double> kDecisionSeconds{1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 1e-2};

}  // namespace

RouteMetrics::RouteMetrics(AccountOptions account_options)
    : accounts(std::move(account_options), "octavo_route"),
      seconds_{.whole = Histogram(kSeconds),
               .first_byte = Histogram(kSeconds),
               .decision = Histogram(kDecisionSeconds)} {}

void RouteMetrics::selected(const std::string& worker) {
  const std::lock_guard lock(mutex_);
  ++selections_[worker];
}
void RouteMetrics::worker_failed(const std::string& worker) {
  const std::lock_guard lock(mutex_);
  ++failures_[worker];
}
void RouteMetrics::cache_changed(const std::string& worker, std::size_t events) {
  const std::lock_guard lock(mutex_);
  cache_events_[worker] += static_cast<std::int64_t>(events);
}
void RouteMetrics::restored(const std::string& worker, std::size_t blocks) {
  const std::lock_guard lock(mutex_);
  restored_[worker] += static_cast<std::int64_t>(blocks);
}
void RouteMetrics::retried() {
  const std::lock_guard lock(mutex_);
  ++retries_;
}
void RouteMetrics::retries_exhausted() {
  const std::lock_guard lock(mutex_);
  ++retries_exhausted_;
}
void RouteMetrics::rate_limited() {
  const std::lock_guard lock(mutex_);
  ++rate_limited_;
}
void RouteMetrics::prefilled(std::string_view outcome) {
  const std::lock_guard lock(mutex_);
  ++prefills_[std::string(outcome)];
}
void RouteMetrics::forget(const std::string& worker) {
  const std::lock_guard lock(mutex_);
  for (auto* counters : {&selections_, &failures_, &cache_events_, &restored_}) counters->erase(worker);
}
void RouteMetrics::migrated(bool goes_on) {
  const std::lock_guard lock(mutex_);
  ++migrations_[goes_on ? "continued" : "failed"];
}
void RouteMetrics::session_moved(bool moved) {
  const std::lock_guard lock(mutex_);
  ++session_moves_[moved ? "moved" : "lost"];
}
void RouteMetrics::hedged(bool won) {
  const std::lock_guard lock(mutex_);
  ++hedges_[won ? "won" : "lost"];
}
void RouteMetrics::peer_reported(bool understood) {
  const std::lock_guard lock(mutex_);
  ++peer_messages_[understood ? "taken" : "malformed"];
}
void RouteMetrics::peers(int now) {
  const std::lock_guard lock(mutex_);
  peers_ = now;
}
void RouteMetrics::prompt_reported(std::int64_t predicted_cached, std::int64_t reported_cached,
                                   bool same_length) {
  const std::lock_guard lock(mutex_);
  predicted_cached_ += predicted_cached;
  reported_cached_ += reported_cached;
  if (!same_length) ++mismatches_;
}
void RouteMetrics::answered(int status, double seconds) {
  const std::lock_guard lock(mutex_);
  ++responses_[status];
  seconds_.whole.observe(seconds);
}
void RouteMetrics::first_byte(double seconds) {
  const std::lock_guard lock(mutex_);
  seconds_.first_byte.observe(seconds);
}
void RouteMetrics::decided(double seconds) {
  const std::lock_guard lock(mutex_);
  seconds_.decision.observe(seconds);
}

std::string RouteMetrics::text() const {
  const std::lock_guard lock(mutex_);
  std::string out;
  write_counters(out, "smg_http_responses_total", "Answers by status.", "status_code", responses_);
  write_histogram(out, "smg_http_request_duration_seconds",
                  "Time from a request's arrival to its answer's end.", seconds_.whole);
  write_histogram(out, "smg_router_ttft_seconds", "Time from a request's arrival to its answer's first byte.",
                  seconds_.first_byte);
  write_counter(out, "smg_http_rate_limit_total", "Requests refused because too many were in flight.",
                rate_limited_);
  write_counters(out, "smg_worker_selection_total", "Requests sent to each worker.", "worker", selections_);
  write_counters(out, "smg_worker_errors_total", "Requests that failed at each worker.", "worker", failures_);
  write_counters(out, "octavo_route_kv_events_total", "KV cache events received from each worker.", "worker",
                 cache_events_);
  write_counters(out, "octavo_route_restored_blocks_total",
                 "Cached blocks of each worker that this router copied from another router at its start.",
                 "worker", restored_);
  write_counters(
      out, "octavo_route_prefills_total",
      "Prompts by the place where they were computed: on a prefill worker (handed_over), or on the decode "
      "worker because few tokens were uncached (local), all prefill workers were busy (busy) or the prefill "
      "workers failed (failed). refused: --enforce-disagg did not allow the decode worker.",
      "outcome", prefills_);
  write_counters(out, "octavo_route_migrations_total",
                 "Streams whose worker failed, by outcome: another worker continued the stream, or it ended "
                 "with an error.",
                 "outcome", migrations_);
  write_counters(
      out, "octavo_route_session_moves_total",
      "Sessions whose worker was full or gone, by outcome: another worker got their blocks (moved), or "
      "computes them (lost).",
      "outcome", session_moves_);
  write_counters(out, "octavo_route_hedges_total",
                 "Requests that a second worker also got, by the worker whose answer the client got.",
                 "outcome", hedges_);
  write_gauge(out, "octavo_route_peers", "Number of other routers that report their requests in flight.",
              peers_);
  write_counters(out, "octavo_route_peer_messages_total",
                 "Messages from other routers, by outcome: applied, or ignored because they were malformed.",
                 "outcome", peer_messages_);
  write_counter(out, "smg_worker_retries_total", "Requests that were sent again after a failure.", retries_);
  write_counter(out, "smg_worker_retries_exhausted_total", "Requests that failed at every attempt.",
                retries_exhausted_);
  write_counter(out, "octavo_route_predicted_cached_tokens_total",
                "Prompt tokens that the router expected in the cache of the chosen replica; only answers "
                "with usage count.",
                predicted_cached_);
  write_counter(out, "octavo_route_reported_cached_tokens_total",
                "Prompt tokens that the replicas reported as cached (cached_tokens), for the same requests.",
                reported_cached_);
  write_counter(out, "octavo_route_prompt_length_mismatches_total",
                "Prompts for which a replica reports another number of tokens than the tokenizer of "
                "--tokenizer-path.",
                mismatches_);
  write_histogram(out, "octavo_route_decision_seconds", "Time to choose a worker.", seconds_.decision);
  return out + accounts.metrics();
}

}  // namespace octavo::fleet
