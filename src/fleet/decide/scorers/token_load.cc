// token-load-scorer: prefers endpoints with few prompt and output tokens in flight.
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class TokenLoadScorer : public Scorer {
 public:
  std::int64_t threshold = 4'194'304;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto tokens = static_cast<double>(cycle.load(*candidates[i]).context_tokens);
      scores[i] = 1 - std::min(1.0, tokens / static_cast<double>(threshold));
    }
  }
};

}  // namespace

std::unique_ptr<Plugin> make_token_load_scorer(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<TokenLoadScorer>();
  parameters.read("queueThresholdTokens", plugin->threshold, 1, std::int64_t{1} << 40);
  // inFlightLoadProducerName has no effect, because the balancer counts the requests in flight.
  parameters.get("inFlightLoadProducerName");
  return plugin;
}

}  // namespace octavo::fleet
