#include "fleet/plan/autoscaler.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kLoadsMax = 4096;  // maximum number of windows that a prediction uses

bool over(double measured_ms, double limit_ms) { return limit_ms > 0 && measured_ms > limit_ms; }

}  // namespace

Autoscaler::Autoscaler(const AutoscalerRules& rules, CapacityTable capacity, const Predictor& predictor,
                       int replicas, std::int64_t now_us)
    : rules_(rules),
      capacity_(std::move(capacity)),
      predictor_(predictor),
      descent_(rules.scaling),
      window_began_us_(now_us),
      not_idle_us_(now_us) {
  CHECK(!predictor.foresees);
  state_.replicas = state_.floor = descent_.decide(now_us, rules.scaling.bounded(replicas));
}

const AutoscalerState& Autoscaler::read(std::int64_t now_us, std::span<const ReplicaReading> replicas,
                                        int silent, double queued) {
  state_.ready = static_cast<int>(replicas.size());
  state_.ttft_ms = state_.tpot_ms = -1;
  double waiting = queued;
  for (const ReplicaReading& one : replicas) {
    tokens_ += one.tokens;
    finished_ += one.finished;
    waiting += one.waiting;
    busy_ = busy_ || one.running > 0 || one.tokens > 0;
    state_.ttft_ms = std::max(state_.ttft_ms, one.ttft_ms);
    state_.tpot_ms = std::max(state_.tpot_ms, one.tpot_ms);
  }
  busy_ = busy_ || waiting > 0;
  const bool none_wanted = state_.replicas == 0;
  unknown_ = unknown_ || silent > 0 || (replicas.empty() && !none_wanted);
  if (none_wanted && queued > 0) {
    state_.floor = descent_.decide(now_us, rules_.scaling.bounded(1));
    decide("queued");
  }
  if (now_us - window_began_us_ >= rules_.scaling.window_us) end_window(now_us, waiting);
  if (silent > 0 || replicas.empty()) not_idle_us_ = now_us;
  correct(now_us, replicas);
  return state_;
}

// Computes the load from the tokens of the requests that have arrived. They are the computed tokens plus the
// growth of the queue, because an overloaded fleet computes fewer tokens than arrive.
void Autoscaler::end_window(std::int64_t now_us, double waiting) {
  if (finished_ > 0) tokens_per_request_ = tokens_ / finished_;
  const double tokens = std::max(0.0, tokens_ + (waiting - waiting_before_) * tokens_per_request_);
  state_.load = tokens / (static_cast<double>(now_us - window_began_us_) * 1e-6);
  loads_.push_back(state_.load);
  if (loads_.size() > kLoadsMax) loads_.erase(loads_.begin());
  state_.predicted = next_load(predictor_, loads_);
  // Without requests, no replica is needed, even if the prediction is still above 0.
  int needed = rules_.scaling.bounded(busy_ ? capacity_.replicas_for(state_.predicted) : 0);
  if (unknown_) needed = std::max(needed, state_.floor);
  const int before = std::exchange(state_.floor, descent_.decide(now_us, needed));
  // If the floor rises, some of the extra replicas become part of the floor.
  extra_ = std::max(0, extra_ - std::max(0, state_.floor - before));
  decide("load");

  window_began_us_ = now_us;
  tokens_ = finished_ = 0;
  waiting_before_ = waiting;
  unknown_ = busy_ = false;
}

void Autoscaler::correct(std::int64_t now_us, std::span<const ReplicaReading> replicas) {
  const double down = rules_.down_sensitivity;
  bool all_late = !replicas.empty(), all_early = true;
  for (const ReplicaReading& one : replicas) {
    all_late = all_late && (over(one.ttft_ms, rules_.ttft_ms) || over(one.tpot_ms, rules_.tpot_ms));
    all_early = all_early && one.waiting == 0 && !over(one.ttft_ms, down * rules_.ttft_ms) &&
                !over(one.tpot_ms, down * rules_.tpot_ms);
  }
  if (!all_early) not_idle_us_ = now_us;
  // Adds the next replica only when the previous one accepts requests.
  if (all_late && state_.ready >= state_.replicas && state_.replicas < rules_.scaling.replicas_max) {
    ++extra_;
    decide("late");
  } else if (extra_ > 0 && now_us - not_idle_us_ >= rules_.scaling.scale_down_delay_us) {
    --extra_;
    not_idle_us_ = now_us;
    decide("early");
  }
}

void Autoscaler::decide(std::string_view reason) {
  const int replicas = rules_.scaling.bounded(state_.floor + extra_);
  if (replicas == state_.replicas) return;
  state_.replicas = replicas;
  state_.reason = reason;
}

}  // namespace octavo::fleet
