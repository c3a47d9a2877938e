// latency-scorer: scores by headroom, which is the request's latency limits minus the predicted latencies
// (as in llm-d, without rounding). Without predictions, the score combines free KV cache, queue length and
// cached prefix.
#include <algorithm>
#include <cmath>
#include <vector>

#include "fleet/decide/latency.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

struct Weights {
  double ttft = 0.8, tpot = 0.2;
  double kv = 1, queue = 1, prefix = 1;
};

class LatencyScorer : public Scorer {
 public:
  const LatencyPredictor* predictor = nullptr;
  std::size_t prefixes = 0;  // index in Cycle::overlaps
  Weights weights;
  bool most = false;  // true: prefer the most headroom; false: prefer the least

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    std::vector<std::optional<Headroom>> rooms;
    for (const Member* member : candidates) rooms.push_back(predictor->headroom(cycle, *member));
    if (std::ranges::none_of(rooms, &std::optional<Headroom>::has_value))
      return score_states(cycle, candidates, scores);
    // Only endpoints of the best class get scores. From best to worst, the classes are: endpoints that meet
    // both limits or have no prediction, idle endpoints, and endpoints that miss the TPOT limit, the TTFT
    // limit, or both.
    enum Class { keeps, idle, misses_tpot, misses_ttft, misses_both };
    std::vector<Class> classes;
    for (std::size_t i = 0; i < rooms.size(); ++i) {
      const Headroom room = rooms[i].value_or(Headroom());
      classes.push_back(room.positive()                            ? keeps
                        : cycle.load(*candidates[i]).requests == 0 ? idle
                        : room.ttft_ms >= 0                        ? misses_tpot
                        : room.tpot_ms >= 0                        ? misses_ttft
                                                                   : misses_both);
    }
    const Class best = std::ranges::min(classes);
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < classes.size(); ++i)
      if (classes[i] == best) members.push_back(i);
    std::ranges::fill(scores, 0);
    score_headroom(rooms, members, best == keeps && most, scores);
  }

 private:
  void score_headroom(std::span<const std::optional<Headroom>> rooms, std::span<const std::size_t> members,
                      bool most_first, std::span<double> scores) const {
    const auto spread = [&](double Headroom::* part) {
      std::vector<double> distances;
      for (const std::size_t i : members) distances.push_back(std::abs(rooms[i].value_or(Headroom()).*part));
      const auto [least, greatest] = std::ranges::minmax(distances);
      for (double& distance : distances)
        distance = greatest - least > 1e-9 ? (distance - least) / (greatest - least) : 0.5;
      return std::pair(std::move(distances), greatest - least > 1e-9);
    };
    const auto [ttft, ttft_differs] = spread(&Headroom::ttft_ms);
    const auto [tpot, tpot_differs] = spread(&Headroom::tpot_ms);
    const double sum = weights.ttft + weights.tpot;
    double first = sum > 0 ? weights.ttft / sum : 1;
    // A latency that is equal at all endpoints has no influence on the scores.
    if (ttft_differs != tpot_differs) first = ttft_differs ? 1 : 0;
    for (std::size_t i = 0; i < members.size(); ++i) {
      const double far = first * ttft[i] + (1 - first) * tpot[i];
      // the score is above 0, which is the score of all lower classes
      scores[members[i]] = 0.01 + 0.99 * (most_first ? far : 1 - far);
    }
  }

  void score_states(const Cycle& cycle, std::span<const Member* const> candidates,
                    std::span<double> scores) const {
    int longest = 0;
    for (const Member* member : candidates) longest = std::max(longest, member->state.waiting);
    const double sum = weights.kv + weights.queue + weights.prefix;
    const Overlap& overlap = cycle.overlaps[prefixes];
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const EndpointState& state = candidates[i]->state;
      const double queue = longest > 0 ? 1 - static_cast<double>(state.waiting) / longest : 1;
      const double prefix =
          overlap.prompt_blocks > 0
              ? static_cast<double>(overlap.of(candidates[i]->id).blocks()) / overlap.prompt_blocks
              : 0;
      const double free = 1 - state.kv_usage;
      scores[i] =
          sum > 0 ? (weights.kv * free + weights.queue * queue + weights.prefix * prefix) / sum : free;
    }
  }
};

}  // namespace

std::unique_ptr<Plugin> make_latency_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<LatencyScorer>();
  constexpr double kMost = 1e9;
  parameters.read("ttftWeight", plugin->weights.ttft, 0, kMost);
  parameters.read("tpotWeight", plugin->weights.tpot, 0, kMost);
  parameters.read("compositeKVWeight", plugin->weights.kv, 0, kMost);
  parameters.read("compositeQueueWeight", plugin->weights.queue, 0, kMost);
  parameters.read("compositePrefixWeight", plugin->weights.prefix, 0, kMost);
  std::string strategy = "least", prefixes = "approx-prefix-cache-producer";
  parameters.read("headroomSelectionStrategy", strategy);
  if (strategy != "least" && strategy != "most")
    parameters.fail("headroomSelectionStrategy", "must be \"least\" or \"most\"");
  plugin->most = strategy == "most";
  parameters.read("prefixMatchInfoProducerName", prefixes);
  plugin->prefixes = plugins.producer(prefixes, parameters, "prefixMatchInfoProducerName");
  plugin->predictor = find_predictor(parameters, plugins);
  return plugin;
}

}  // namespace octavo::fleet
