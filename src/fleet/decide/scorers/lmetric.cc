// lmetric-scorer: prefers endpoints with a low product of tokens to compute and requests in flight.
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"
#include "fleet/decide/scorers/least_of.h"

namespace octavo::fleet {
namespace {

class LMetricScorer : public Scorer {
 public:
  std::size_t producer = 0;  // index in Cycle::overlaps

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const Overlap& overlap = cycle.overlaps[producer];
    if (overlap.prompt_blocks == 0) return;
    score_least(candidates, scores, [&](const Member& m) {
      return (overlap.prompt_blocks - overlap.of(m.id).blocks()) * (cycle.load(m).requests + 1.0);
    });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_lmetric_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<LMetricScorer>();
  std::string name = "approx-prefix-cache-producer";
  parameters.read("prefixMatchInfoProducerName", name);
  // inFlightLoadProducerName has no effect, because the balancer counts the requests in flight.
  parameters.get("inFlightLoadProducerName");
  plugin->producer = plugins.producer(name, parameters, "prefixMatchInfoProducerName");
  return plugin;
}

}  // namespace octavo::fleet
