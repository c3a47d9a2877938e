// prefix-cache-affinity-filter: keeps endpoints that have cached at least a given fraction of the prompt,
// unless their predicted time to the first token is too much longer than that of the fastest endpoint. With
// the probability explorationProbability the filter keeps all endpoints, so that more endpoints cache the
// prefix.
#include <algorithm>
#include <cmath>

#include "fleet/decide/latency.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

class PrefixCacheAffinityFilter : public Filter {
 public:
  std::size_t producer = 0;  // index in Cycle::overlaps
  double threshold = 0.8;
  double exploration = 0;
  double penalty_ms_max = 18'000;  // additional time to the first token; 0: no limit
  double tokens_per_second = 15'928;
  double penalty_tokens_max = 0;                // additional tokens in flight; 0: no limit
  const LatencyPredictor* predictor = nullptr;  // null: times are estimated from the tokens to compute

  void filter(Cycle& cycle, Candidates& candidates) override {
    const Overlap& overlap = cycle.overlaps[producer];
    if (candidates.empty() || overlap.prompt_blocks == 0 || cycle.draws.unit() < exploration) return;
    const auto holds = [&](const Member* member) {
      return overlap.of(member->id).blocks() >= threshold * overlap.prompt_blocks;
    };
    double best = HUGE_VAL, best_holder = HUGE_VAL;
    for (const Member* member : candidates) {
      const double ms = ttft_ms(cycle, overlap, *member);
      best = std::min(best, ms);
      if (holds(member)) best_holder = std::min(best_holder, ms);
    }
    if (best_holder == HUGE_VAL || (penalty_ms_max > 0 && best_holder - best > penalty_ms_max) ||
        has_too_many_tokens(cycle, candidates, holds))
      return;
    std::erase_if(candidates, [&](const Member* member) { return !holds(member); });
  }

 private:
  // Returns whether the least loaded endpoint that has cached the prompt has more tokens in flight than the
  // least loaded endpoint of all, by more than penalty_tokens_max.
  bool has_too_many_tokens(const Cycle& cycle, const Candidates& candidates, auto holds) const {
    if (penalty_tokens_max == 0) return false;
    double least = HUGE_VAL, least_holder = HUGE_VAL;
    for (const Member* member : candidates) {
      const auto tokens = static_cast<double>(cycle.load(*member).context_tokens);
      least = std::min(least, tokens);
      if (holds(member)) least_holder = std::min(least_holder, tokens);
    }
    return least_holder - least > penalty_tokens_max;
  }

  // Returns the predicted time to the first token in ms. Without a prediction, estimates the time from the
  // tokens to compute and the prefill speed.
  double ttft_ms(const Cycle& cycle, const Overlap& overlap, const Member& member) const {
    if (const auto predicted = predictor ? predictor->ttft_ms(cycle, member) : std::nullopt) return *predicted;
    const auto prompt = static_cast<double>(cycle.request.tokens.size());
    const double cached = static_cast<double>(overlap.of(member.id).blocks()) * overlap.block_size;
    const double waiting = static_cast<double>(cycle.load(member).prefill_tokens);
    return (std::max(prompt - cached, 0.0) + waiting) / tokens_per_second * 1000;
  }
};

}  // namespace

std::unique_ptr<Plugin> make_prefix_cache_affinity_filter(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<PrefixCacheAffinityFilter>();
  std::string producer = "approx-prefix-cache-producer", source = "prefillThroughput";
  parameters.read("prefixMatchInfoProducerName", producer);
  parameters.read("affinityThreshold", plugin->threshold, 0, 1);
  parameters.read("explorationProbability", plugin->exploration, 0, 1);
  parameters.read("maxTTFTPenaltyMs", plugin->penalty_ms_max, 0, 1e9);
  parameters.read("peakPrefillThroughput", plugin->tokens_per_second, 1, 1e12);
  parameters.read("maxTokensInFlightPenalty", plugin->penalty_tokens_max, 0, 1e12);
  // inFlightLoadProducerName has no effect, because the balancer counts the requests in flight.
  parameters.get("inFlightLoadProducerName");
  parameters.read("ttftSource", source);
  if (source == "latencyPredictor")
    plugin->predictor = find_predictor(parameters, plugins);
  else if (source != "prefillThroughput")
    parameters.fail("ttftSource", "must be \"prefillThroughput\" or \"latencyPredictor\"");
  if (source != "latencyPredictor") parameters.get("latencyPredictionInfoProducerName");
  plugin->producer = plugins.producer(producer, parameters, "prefixMatchInfoProducerName");
  return plugin;
}

}  // namespace octavo::fleet
