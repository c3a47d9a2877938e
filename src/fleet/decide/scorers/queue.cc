// queue-scorer: prefers endpoints with few waiting requests.
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/scorers/least_of.h"

namespace octavo::fleet {
namespace {

class QueueScorer : public Scorer {
 public:
  void score(Cycle&, std::span<const Member* const> candidates, std::span<double> scores) override {
    score_least(candidates, scores, [](const Member& m) { return m.state.waiting; });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_queue_scorer(Parameters&, Plugins&) { return std::make_unique<QueueScorer>(); }

}  // namespace octavo::fleet
