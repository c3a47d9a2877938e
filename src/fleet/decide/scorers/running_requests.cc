// running-requests-size-scorer: prefers endpoints with few running requests.
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/scorers/least_of.h"

namespace octavo::fleet {
namespace {

class RunningRequestsScorer : public Scorer {
 public:
  void score(Cycle&, std::span<const Member* const> candidates, std::span<double> scores) override {
    score_least(candidates, scores, [](const Member& m) { return m.state.running; });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_running_requests_scorer(Parameters&, Plugins&) {
  return std::make_unique<RunningRequestsScorer>();
}

}  // namespace octavo::fleet
