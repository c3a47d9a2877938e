// llm-d's program-aware-fairness with the strategy turn-priority: prefers the session with the most turns,
// because its prefix is most likely cached. Waiting time counts as additional turns, so that new sessions
// are not starved.
#include <algorithm>
#include <map>
#include <string>

#include "fleet/flow/fairness.h"

namespace octavo::fleet {
namespace {

// Maximum number of stored sessions, which is limited because clients choose the names. All further sessions
// count as being at their first turn.
constexpr std::size_t kSessionsMax = 100'000;

struct TurnSettings {
  double turns_per_second = 0.5;  // turns that a request gains for each second of waiting
  double idle_s = 120;            // a session without requests for this time starts again at turn 1
};

class TurnPriority : public FairnessPolicy, public std::enable_shared_from_this<TurnPriority> {
 public:
  explicit TurnPriority(TurnSettings settings) : settings_(settings) {}

  std::unique_ptr<Fairness> make() override;

  void ended(std::string_view flow, std::int64_t, std::int64_t, std::int64_t now_us) override {
    const auto found = sessions_.find(flow);
    if (found != sessions_.end()) found->second.active_us = now_us;
  }

  std::size_t pick(std::span<const FlowHead> heads, std::int64_t now_us) {
    const auto score = [&](const FlowHead& head) {
      const double waited_s = static_cast<double>(now_us - head.arrived_us) * 1e-6;
      return static_cast<double>(turn(head.flow, now_us)) + settings_.turns_per_second * waited_s;
    };
    const auto best = std::ranges::max_element(heads, {}, score);
    take_turn(best->flow, now_us);
    return static_cast<std::size_t>(best - heads.begin());
  }

 private:
  struct Session {
    std::int64_t turns = 0;
    std::int64_t active_us = 0;
  };

  bool is_idle(const Session& session, std::int64_t now_us) const {
    return static_cast<double>(now_us - session.active_us) * 1e-6 > settings_.idle_s;
  }

  // Returns the number of the waiting turn, starting at 1.
  std::int64_t turn(std::string_view flow, std::int64_t now_us) const {
    const auto found = sessions_.find(flow);
    return found == sessions_.end() || is_idle(found->second, now_us) ? 1 : found->second.turns + 1;
  }

  void take_turn(std::string_view flow, std::int64_t now_us) {
    const std::int64_t turns = turn(flow, now_us);
    auto found = sessions_.find(flow);
    if (found == sessions_.end()) {
      if (sessions_.size() >= kSessionsMax)
        std::erase_if(sessions_, [&](const auto& session) { return is_idle(session.second, now_us); });
      if (sessions_.size() >= kSessionsMax) return;
      found = sessions_.try_emplace(std::string(flow)).first;
    }
    found->second = {turns, now_us};
  }

  const TurnSettings settings_;
  std::map<std::string, Session, std::less<>> sessions_;
};

class DeepestSession : public Fairness {
 public:
  explicit DeepestSession(std::shared_ptr<TurnPriority> policy) : policy_(std::move(policy)) {}
  std::size_t pick(std::span<const FlowHead> heads, std::int64_t now_us) override {
    return policy_->pick(heads, now_us);
  }

 private:
  const std::shared_ptr<TurnPriority> policy_;
};

std::unique_ptr<Fairness> TurnPriority::make() { return std::make_unique<DeepestSession>(shared_from_this()); }

}  // namespace

std::shared_ptr<FairnessPolicy> make_turn_priority(Parameters& parameters) {
  constexpr double kMost = 1e9;
  TurnSettings settings;
  parameters.read("turnPriorityTimeWeight", settings.turns_per_second, 0, kMost);
  parameters.read("turnPriorityInactivitySeconds", settings.idle_s, 0, kMost);
  // llm-d's fields that have no effect here, because idle sessions are always dropped
  for (const char* field : {"evictionTtlSeconds", "evictionSweepSeconds"}) parameters.get(field);
  return std::make_shared<TurnPriority>(settings);
}

}  // namespace octavo::fleet
