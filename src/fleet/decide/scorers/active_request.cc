// active-request-scorer: prefers endpoints with few requests in flight.
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class ActiveRequestScorer : public Scorer {
 public:
  std::int64_t idle_threshold = 0;
  double busy_score_max = 1;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    int most = 0;
    for (const Member* m : candidates) most = std::max(most, cycle.load(*m).requests);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const int requests = cycle.load(*candidates[i]).requests;
      scores[i] = requests <= idle_threshold ? 1.0 : busy_score_max * (most - requests) / most;
    }
  }
};

}  // namespace

std::unique_ptr<Plugin> make_active_request_scorer(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<ActiveRequestScorer>();
  parameters.read("idleThreshold", plugin->idle_threshold, 0, 1'000'000);
  parameters.read("maxBusyScore", plugin->busy_score_max, 0, 1);
  // inFlightLoadProducerName has no effect, because the balancer counts the requests in flight.
  parameters.get("inFlightLoadProducerName");
  parameters.get("requestTimeout");  // has no effect, because a request counts until its stream ends
  return plugin;
}

}  // namespace octavo::fleet
