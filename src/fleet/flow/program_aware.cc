// llm-d's program-aware-fairness: prefers programs that have received little service and have waited long. A
// program's service is the number of its tokens, where an output token counts twice. It decays with a
// half-life.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "fleet/flow/fairness.h"

namespace octavo::fleet {
namespace {

constexpr double kOutputWeight = 2;
// Maximum number of stored programs, which is limited because clients choose the names. All further programs
// count as having no service.
constexpr std::size_t kProgramsMax = 100'000;

struct Settings {
  double service_weight = 0.8, wait_weight = 0.2;
  double half_life_s = 60;  // 0: no decay
  double keep_s = 3600;     // a program without requests for this time is dropped; 0: never
  double sweep_s = 300;
};

double seconds(std::int64_t us) { return static_cast<double>(us) * 1e-6; }

// Returns the value's position between `least` (result 0) and `most` (result 1). Returns 0.5 if `least`
// equals `most`.
double share_in(double value, double least, double most) {
  return most > least ? (value - least) / (most - least) : 0.5;
}

class ProgramAware : public FairnessPolicy, public std::enable_shared_from_this<ProgramAware> {
 public:
  explicit ProgramAware(Settings settings) : settings_(settings) {}

  std::unique_ptr<Fairness> make() override;

  void ended(std::string_view flow, std::int64_t input, std::int64_t output, std::int64_t now_us) override {
    sweep(now_us);
    auto found = programs_.find(flow);
    if (found == programs_.end()) {
      if (programs_.size() >= kProgramsMax) return;
      found = programs_.emplace(flow, Program{0, now_us}).first;
    }
    Program& program = found->second;
    program.service =
        decayed(program, now_us) + static_cast<double>(input) + kOutputWeight * static_cast<double>(output);
    program.at_us = now_us;
  }

  double service(std::string_view flow, std::int64_t now_us) const {
    const auto found = programs_.find(flow);
    return found != programs_.end() ? decayed(found->second, now_us) : 0;
  }
  const Settings& settings() const { return settings_; }

 private:
  struct Program {
    double service;  // tokens, decayed to the time at_us
    std::int64_t at_us;
  };

  double decayed(const Program& program, std::int64_t now_us) const {
    if (settings_.half_life_s == 0) return program.service;
    return program.service *
           std::exp2(-seconds(std::max<std::int64_t>(0, now_us - program.at_us)) / settings_.half_life_s);
  }

  void sweep(std::int64_t now_us) {
    if (settings_.keep_s == 0 || seconds(now_us - swept_us_) < settings_.sweep_s) return;
    swept_us_ = now_us;
    std::erase_if(programs_,
                  [&](const auto& p) { return seconds(now_us - p.second.at_us) > settings_.keep_s; });
  }

  const Settings settings_;
  std::map<std::string, Program, std::less<>> programs_;
  std::int64_t swept_us_ = 0;
};

class LeastService : public Fairness {
 public:
  explicit LeastService(std::shared_ptr<const ProgramAware> policy) : policy_(std::move(policy)) {}

  std::size_t pick(std::span<const FlowHead> heads, std::int64_t now_us) override {
    const auto service = [&](const FlowHead& head) { return policy_->service(head.flow, now_us); };
    const auto [least, most] = std::ranges::minmax(heads, {}, service);
    const auto [newest, oldest] = std::ranges::minmax(heads, std::greater(), &FlowHead::arrived_us);
    const double least_service = service(least), most_service = service(most);
    const double most_wait = seconds(now_us - oldest.arrived_us),
                 least_wait = seconds(now_us - newest.arrived_us);
    const auto score = [&](const FlowHead& head) {
      const double wait = seconds(now_us - head.arrived_us);
      return policy_->settings().service_weight * (1 - share_in(service(head), least_service, most_service)) +
             policy_->settings().wait_weight * share_in(wait, least_wait, most_wait);
    };
    return static_cast<std::size_t>(std::ranges::max_element(heads, {}, score) - heads.begin());
  }

 private:
  const std::shared_ptr<const ProgramAware> policy_;
};

std::unique_ptr<Fairness> ProgramAware::make() { return std::make_unique<LeastService>(shared_from_this()); }

}  // namespace

std::shared_ptr<FairnessPolicy> make_program_aware(Parameters& parameters) {
  constexpr double kMost = 1e9;
  Settings settings;
  std::string strategy = "las";
  parameters.read("strategy", strategy);
  if (strategy == "turn-priority") return make_turn_priority(parameters);
  if (strategy != "las" && !strategy.empty())
    parameters.fail("strategy", "must be \"las\" or \"turn-priority\"");
  parameters.read("lasWeightService", settings.service_weight, 0, kMost);
  parameters.read("lasWeightHeadWait", settings.wait_weight, 0, kMost);
  parameters.read("lasHalfLifeSeconds", settings.half_life_s, 0, kMost);
  parameters.read("evictionTtlSeconds", settings.keep_s, 0, kMost);
  parameters.read("evictionSweepSeconds", settings.sweep_s, 1e-3, kMost);
  return std::make_shared<ProgramAware>(settings);
}

}  // namespace octavo::fleet
