#include "fleet/balance/flow_gate.h"

#include <fmt/format.h>

#include <chrono>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {
namespace {

constexpr std::chrono::milliseconds kTick{1};  // each tick and each arrival dispatches at most one request
constexpr std::int64_t kWarnUs = 30'000'000;
const std::vector<double> kWaitSeconds{.001, .002, .005, .01, .02, .05, .1, .2, .5,
                                       1,    2,    5,    10,  20,  30,  60, 120};
const std::vector<double> kWorkSeconds{1e-6, 1e-5, 1e-4, 1e-3, 1e-2, .1};

double seconds_since(std::int64_t begun_us) { return static_cast<double>(now_us() - begun_us) * 1e-6; }

}  // namespace

FlowGateCounts::FlowGateCounts()
    : waits(kWaitSeconds), enqueues(kWorkSeconds), dispatch_cycles(kWorkSeconds) {}

FlowGate::FlowGate(Balancer& balancer, FlowGateOptions options)
    : balancer_(balancer),
      detector_(options.detector),
      own_saturation_(std::move(options.saturation)),
      program_(options.program),
      flow_(std::move(options.flow)) {
  if (options.evicts) reclamation_.emplace();
  thread_ = std::thread([this] { run(); });
}

FlowGate::~FlowGate() {
  stop();
  thread_.join();
}

std::uint64_t FlowGate::new_id() {
  const std::lock_guard lock(mutex_);
  return ++last_id_;
}

void FlowGate::enqueue(FlowItem item, Then then) {
  Outcomes outcomes;
  {
    const std::lock_guard lock(mutex_);
    const std::int64_t begun = now_us();
    const FlowItem arrived{.id = item.id, .priority = item.priority, .arrived_us = item.arrived_us};
    waiting_.emplace(item.id, std::move(then));
    if (stopping_)
      settle(arrived, FlowOutcome::evicted_other, outcomes);
    else if (const auto refused = flow_.enqueue(std::move(item), balancer_.view()->members.empty()))
      settle(arrived, *refused, outcomes);
    counts_.enqueues.observe(seconds_since(begun));
  }
  arrived_.notify_one();
  notify(outcomes);
}

void FlowGate::cancel(std::uint64_t id) {
  Outcomes outcomes;
  {
    const std::lock_guard lock(mutex_);
    if (const auto ended = flow_.cancel(id)) settle(ended->item, ended->outcome, outcomes);
  }
  notify(outcomes);
}

void FlowGate::ended(const std::string& fairness_id, std::int64_t input_tokens, std::int64_t output_tokens) {
  const std::lock_guard lock(mutex_);
  flow_.ended(fairness_id, input_tokens, output_tokens, now_us());
}

void FlowGate::runs(std::uint64_t id, int priority, std::function<void()> evict) {
  const std::lock_guard lock(mutex_);
  reclamation_->started(id, priority, now_us());
  running_[id] = std::move(evict);
}

void FlowGate::stopped(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  if (running_.erase(id) > 0) reclamation_->ended(id, now_us());
}

void FlowGate::stop() {
  Outcomes outcomes;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& ended : flow_.drain()) settle(ended.item, ended.outcome, outcomes);
  }
  arrived_.notify_one();
  notify(outcomes);
}

void FlowGate::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    if (flow_.waiting() == 0)
      arrived_.wait(lock);
    else
      arrived_.wait_for(lock, kTick);
    step(lock);
  }
}

void FlowGate::step(std::unique_lock<std::mutex>& lock) {
  const std::int64_t begun = now_us();
  Outcomes outcomes;
  for (const auto& ended : flow_.expire(now_us(), balancer_.view()->members.empty()))
    settle(ended.item, ended.outcome, outcomes);
  std::vector<std::function<void()>> evicted;
  if (!balancer_.view()->members.empty()) {
    const double taken = saturation();
    if (const auto item = flow_.next(taken, now_us()))
      settle(*item, FlowOutcome::dispatched, outcomes);
    else
      evicted = victims(taken);
    if (taken >= 1 && flow_.waiting() > 0) warn_if_blind();
  }
  counts_.dispatch_cycles.observe(seconds_since(begun));
  lock.unlock();
  notify(outcomes);  // `then` books the request before the next request is dispatched
  for (const auto& evict : evicted) evict();
  lock.lock();
}

std::vector<std::function<void()>> FlowGate::victims(double saturation) {
  std::vector<std::function<void()>> found;
  if (!reclamation_) return found;
  for (const std::uint64_t id : reclamation_->victims(saturation, flow_.blocked(saturation), now_us()))
    found.push_back(running_.at(id));
  counts_.evictions += static_cast<std::int64_t>(found.size());
  return found;
}

double FlowGate::saturation() const {
  return own_saturation_ ? own_saturation_() : balancer_.saturation(detector_);
}

int FlowGate::blind_endpoints() const { return own_saturation_ ? 0 : balancer_.stale_endpoints(detector_); }

void FlowGate::warn_if_blind() {
  const std::int64_t now = now_us();
  if (warned_us_ > 0 && now - warned_us_ < kWarnUs) return;
  const int blind = blind_endpoints();
  if (blind == 0) return;
  warned_us_ = now;
  log_warning(
      "requests wait, and {} of {} endpoints count as full because their metrics are missing or older than "
      "metricsStalenessThreshold: check the path, port and TLS of the endpoints' metrics",
      blind, balancer_.view()->members.size());
}

void FlowGate::settle(const FlowItem& item, FlowOutcome outcome, Outcomes& outcomes) {
  outcomes.emplace_back(std::move(waiting_.extract(item.id).mapped()), outcome);
  const std::string text(name(outcome));
  ++counts_.outcomes[text];
  counts_.waits.observe(label_text({{"priority", std::to_string(item.priority)}, {"outcome", text}}),
                        seconds_since(item.arrived_us));
}

void FlowGate::notify(Outcomes& outcomes) {
  for (auto& [then, outcome] : outcomes) then(outcome);
}

std::string FlowGate::metrics(const std::string& pool) const {
  const double taken = saturation();
  const int blind = blind_endpoints();
  const std::lock_guard lock(mutex_);
  const std::string of_pool = pool.empty() ? "" : label_text({{"inference_pool", pool}});
  CounterFamily requests, bytes;
  for (const FlowControl::BandLoad& load : flow_.loads()) {
    const std::string band =
        fmt::format("priority=\"{}\"{}{}", load.priority, pool.empty() ? "" : ",", of_pool);
    requests.add(band, static_cast<std::int64_t>(load.requests));
    bytes.add(band, static_cast<std::int64_t>(load.bytes));
  }
  std::string out;
  requests.write(out, "llm_d_epp_flow_control_queue_size",
                 "Requests that wait because the endpoints are at their limit.", "gauge");
  bytes.write(out, "llm_d_epp_flow_control_queue_bytes", "Bytes of the bodies of waiting requests.", "gauge");
  constexpr std::string_view kSaturation = "llm_d_epp_flow_control_pool_saturation";
  out += fmt::format(
      "# HELP {0} Load of the endpoints as a fraction of their capacity. Requests wait from 1 on; a larger "
      "load is possible.\n# TYPE {0} gauge\n{0}{1} {2}\n",
      kSaturation, pool.empty() ? "" : "{" + of_pool + "}", taken);
  if (std::holds_alternative<UtilizationDetector>(detector_) && !own_saturation_) {
    CounterFamily stale;
    stale.add(label_text({{"detector", "utilization-detector"}}), blind);
    stale.write(out, "llm_d_epp_flow_control_stale_endpoints",
                "Endpoints whose metrics are missing or older than metricsStalenessThreshold.", "gauge");
  }
  counts_.waits.write(out, "llm_d_epp_flow_control_request_queue_duration_seconds",
                      "Time for which a request waited.");
  write_histogram(out, "llm_d_epp_flow_control_request_enqueue_duration_seconds",
                  "Time to enqueue a request.", counts_.enqueues);
  write_histogram(out, "llm_d_epp_flow_control_dispatch_cycle_duration_seconds",
                  "Time of one dispatch cycle.", counts_.dispatch_cycles);
  const auto own = [&](std::string_view what) {
    return fmt::format("octavo_{}_flow_control_{}_total", program_, what);
  };
  write_counter(out, own("evictions"), "Running requests that were ended to make room for waiting requests.",
                counts_.evictions);
  write_counters(out, own("outcomes"), "Waiting requests, by outcome.", "outcome", counts_.outcomes);
  return out;
}

}  // namespace octavo::fleet
