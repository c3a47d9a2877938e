#include "fleet/autoscale/planner.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/autoscale/connector.h"
#include "fleet/observe/metrics_text.h"
#include "fleet/observe/server_pages.h"

namespace octavo::fleet {
namespace {

constexpr int kTickMs = 200;

std::string latency(double ms) { return ms < 0 ? "-" : fmt::format("{:.1f} ms", ms); }

}  // namespace

struct Planner::State {
  State(PlannerOptions o, std::unique_ptr<Connector> c)
      : options(std::move(o)), watch(options.share, options.pool), connector(std::move(c)) {}

  FleetReading read();
  void run();
  void reading(std::int64_t now);
  void begin(const FleetReading& fleet, std::int64_t now);
  void warn(const std::string& text);
  std::string metrics();

  const PlannerOptions options;
  ReplicaWatch watch;
  std::optional<Autoscaler> scaler;  // nullopt: the number of existing replicas is not known yet
  const std::unique_ptr<Connector> connector;
  std::string problem;  // last warning
  std::unique_ptr<http::Server> server;
  std::thread thread;

  std::mutex mutex;  // guards all members below
  std::condition_variable wake;
  // time at which stop() no longer waits for Connector::end(); nullopt: not stopping
  std::optional<std::int64_t> stop_until_us;
  std::optional<AutoscalerState> seen;  // nullopt: no decision yet
  int silent = 0;
  double queued = 0;
  std::map<std::string, std::int64_t> decisions;  // reason -> number of decisions
};

FleetReading Planner::State::read() {
  const std::string_view type = options.pool == Pool::both      ? ""
                                : options.pool == Pool::prefill ? "prefill"
                                                                : "decode";
  const std::vector<std::string> servers = servers_at(options.urls, options.api_key, type);
  FleetReading reading = watch.read(metrics_pages(servers, options.api_key));
  std::vector<std::string> routers;
  for (const std::string& url : options.urls)
    if (std::ranges::find(servers, url) == servers.end()) routers.push_back(url);
  for (const auto& [router, page] : metrics_pages(routers, options.api_key))
    if (page) reading.queued += queued_requests(*page);
  return reading;
}

void Planner::State::run() {
  std::int64_t next_us = now_us();
  std::unique_lock lock(mutex);
  for (;;) {
    const auto until = stop_until_us;
    lock.unlock();
    const std::int64_t now = now_us();
    if (until) {
      if (connector->end(now) || now >= *until) return;
    } else if (scaler) {
      connector->tick(scaler->state().replicas, now);
    }
    if (!until && now >= next_us) {
      next_us = std::max(next_us + std::int64_t{1000} * options.interval_ms, now);
      reading(now);
    }
    lock.lock();
    wake.wait_for(lock, std::chrono::milliseconds(kTickMs), [&] { return stop_until_us != until; });
  }
}

// Logs a warning once, until another one.
void Planner::State::warn(const std::string& text) {
  if (text != std::exchange(problem, text) && !text.empty()) log_warning("{}", text);
}

void Planner::State::begin(const FleetReading& fleet, std::int64_t now) {
  const Result<int> existing = connector->existing(fleet);
  if (!existing)
    return warn("no decision, because the number of replicas is unknown: " + existing.error().message);
  scaler.emplace(options.rules, *options.capacity, *options.predictor, *existing, now);
}

void Planner::State::reading(std::int64_t now) {
  const FleetReading fleet = read();
  {
    const std::lock_guard lock(mutex);
    silent = fleet.silent;
    queued = fleet.queued;
  }
  if (!scaler) begin(fleet, now);
  if (!scaler) return;
  warn(fleet.problem.empty() ? "" : "no replica is removed: " + fleet.problem);
  const int before = scaler->state().replicas;
  const AutoscalerState& state = scaler->read(now, fleet.replicas, fleet.silent, fleet.queued);
  if (state.replicas != before)
    log_info("{} -> {} replicas ({}): {:.0f} tokens/s, {:.0f} predicted, {} needed, TTFT {}, TPOT {}", before,
             state.replicas, state.reason, state.load, state.predicted, state.floor, latency(state.ttft_ms),
             latency(state.tpot_ms));
  const std::lock_guard lock(mutex);
  if (state.replicas != before) ++decisions[std::string(state.reason)];
  seen = state;
}

std::string Planner::State::metrics() {
  const std::lock_guard lock(mutex);
  std::string out;
  write_gauge(out, "octavo_plan_silent_replicas", "Number of replicas that did not answer.", silent);
  write_gauge(out, "octavo_plan_queued_requests", "Requests that wait in the queues of routers.", queued);
  // If the metric is missing, HPA and KEDA keep the existing replicas.
  if (!seen) return out;
  write_gauge(out, "octavo_plan_desired_replicas", "Number of replicas that the planner wants.",
              seen->replicas);
  write_gauge(out, "octavo_plan_ready_replicas", "Number of replicas that answered.", seen->ready);
  write_gauge(out, "octavo_plan_needed_replicas", "Number of replicas that the predicted load needs.",
              seen->floor);
  write_gauge(out, "octavo_plan_load_tokens_per_second", "Load of the previous window.", seen->load);
  write_gauge(out, "octavo_plan_predicted_tokens_per_second", "Predicted load of the current window.",
              seen->predicted);
  if (seen->ttft_ms >= 0)
    write_gauge(out, "octavo_plan_ttft_seconds", "Maximum time to the first token among the replicas.",
                seen->ttft_ms * 1e-3);
  if (seen->tpot_ms >= 0)
    write_gauge(out, "octavo_plan_tpot_seconds", "Maximum time per output token among the replicas.",
                seen->tpot_ms * 1e-3);
  write_counters(out, "octavo_plan_decisions_total", "Changes of the number of replicas, by cause.", "reason",
                 decisions);
  return out;
}

Result<std::unique_ptr<Planner>> Planner::start(PlannerOptions options,
                                                std::unique_ptr<Connector> connector) {
  auto state = std::make_unique<State>(std::move(options), std::move(connector));
  TRY(state->server, http::Server::start(state->options.http, [state = state.get()](
                                                                  std::shared_ptr<http::Exchange> exchange) {
        const std::string& path = exchange->request().path;
        if (path == "/metrics")
          return exchange->respond(
              {.content_type = std::string(kMetricsContentType), .body = state->metrics()});
        if (path == "/health") return exchange->respond({.content_type = "text/plain", .body = "ok\n"});
        exchange->respond({.status = 404,
                           .content_type = "text/plain",
                           .body = "the planner serves only /metrics and /health\n"});
      }));
  state->thread = std::thread([state = state.get()] { state->run(); });
  return std::unique_ptr<Planner>(new Planner(std::move(state)));
}

Planner::Planner(std::unique_ptr<State> state) : state_(std::move(state)) {}

Planner::~Planner() { stop(0); }

std::string Planner::address() const { return state_->server->address(); }

void Planner::stop(int grace_ms) {
  if (!state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop_until_us = now_us() + std::int64_t{1000} * grace_ms;
  }
  state_->wake.notify_all();
  state_->thread.join();
  state_->server->stop(0);
}

}  // namespace octavo::fleet
