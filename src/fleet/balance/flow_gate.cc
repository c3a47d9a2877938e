#include "fleet/balance/flow_gate.h"

#include <fmt/format.h>

#include <chrono>

#include "base/clock.h"
#include "fleet/observe/metrics_text.h"

namespace octavo::fleet {
namespace {

constexpr std::chrono::milliseconds kTick{1};  // one request goes in each, and one with each arrival
const std::vector<double> kWaitSeconds{.001, .002, .005, .01, .02, .05, .1, .2, .5,
                                       1,    2,    5,    10,  20,  30,  60, 120};

}  // namespace

FlowGate::FlowGate(Balancer& balancer, FlowGateOptions options)
    : balancer_(balancer),
      detector_(options.detector),
      own_saturation_(std::move(options.saturation)),
      program_(options.program),
      flow_(std::move(options.flow)),
      seconds_(kWaitSeconds) {
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
  Told told;
  {
    const std::lock_guard lock(mutex_);
    const std::uint64_t id = item.id;
    const std::int64_t arrived = item.arrived_us;
    waiting_.emplace(id, std::move(then));
    if (stopping_)
      settle(id, arrived, FlowOutcome::evicted_other, told);
    else if (const auto refused = flow_.enqueue(std::move(item), balancer_.view()->members.empty()))
      settle(id, arrived, *refused, told);
  }
  arrived_.notify_one();
  tell(told);
}

void FlowGate::cancel(std::uint64_t id) {
  Told told;
  {
    const std::lock_guard lock(mutex_);
    if (const auto ended = flow_.cancel(id)) settle(id, ended->item.arrived_us, ended->outcome, told);
  }
  tell(told);
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
  Told told;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& ended : flow_.drain()) settle(ended.item.id, ended.item.arrived_us, ended.outcome, told);
  }
  arrived_.notify_one();
  tell(told);
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
  Told told;
  for (const auto& ended : flow_.expire(now_us(), balancer_.view()->members.empty()))
    settle(ended.item.id, ended.item.arrived_us, ended.outcome, told);
  std::vector<std::function<void()>> evicted;
  if (!balancer_.view()->members.empty()) {  // without endpoints nothing goes, however little is taken
    const double taken = saturation();
    if (const auto item = flow_.next(taken, now_us()))
      settle(item->id, item->arrived_us, FlowOutcome::dispatched, told);
    else
      evicted = victims(taken);
  }
  lock.unlock();
  tell(told);  // who goes is booked before the next one's turn
  for (const auto& evict : evicted) evict();
  lock.lock();
}

std::vector<std::function<void()>> FlowGate::victims(double saturation) {
  std::vector<std::function<void()>> found;
  if (!reclamation_) return found;
  for (const std::uint64_t id : reclamation_->victims(saturation, flow_.blocked(saturation), now_us()))
    found.push_back(running_.at(id));
  evictions_ += static_cast<std::int64_t>(found.size());
  return found;
}

double FlowGate::saturation() const {
  return own_saturation_ ? own_saturation_() : balancer_.saturation(detector_);
}

void FlowGate::settle(std::uint64_t id, std::int64_t arrived_us, FlowOutcome outcome, Told& told) {
  told.emplace_back(std::move(waiting_.extract(id).mapped()), outcome);
  ++outcomes_[std::string(name(outcome))];
  seconds_.observe(static_cast<double>(now_us() - arrived_us) * 1e-6);
}

void FlowGate::tell(Told& told) {
  for (auto& [then, outcome] : told) then(outcome);
}

std::string FlowGate::metrics() const {
  const double taken = saturation();
  const std::lock_guard lock(mutex_);
  std::string out;
  std::string bytes;
  const auto begin = [](std::string& text, std::string_view metric, std::string_view help) {
    text += fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", metric, help);
  };
  begin(out, "llm_d_epp_flow_control_queue_size", "Requests that wait for room at the endpoints.");
  begin(bytes, "llm_d_epp_flow_control_queue_bytes", "Their bodies' bytes.");
  for (const FlowControl::BandLoad& load : flow_.loads()) {
    out += fmt::format("llm_d_epp_flow_control_queue_size{{priority=\"{}\"}} {}\n", load.priority,
                       load.requests);
    bytes +=
        fmt::format("llm_d_epp_flow_control_queue_bytes{{priority=\"{}\"}} {}\n", load.priority, load.bytes);
  }
  out += bytes;
  write_gauge(out, "llm_d_epp_flow_control_pool_saturation",
              "Load of the endpoints as a share of their capacity.", taken);
  write_histogram(out, "llm_d_epp_flow_control_request_queue_duration_seconds", "How long requests waited.",
                  seconds_);
  const auto own = [&](std::string_view what) {
    return fmt::format("octavo_{}_flow_control_{}_total", program_, what);
  };
  write_counter(out, own("evictions"), "Running requests that ended for those that waited.", evictions_);
  write_counters(out, own("outcomes"), "Outcomes of requests that waited.", "outcome", outcomes_);
  return out;
}

}  // namespace octavo::fleet
