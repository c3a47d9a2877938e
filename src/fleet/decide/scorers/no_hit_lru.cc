// no-hit-lru-scorer: spreads cold prompts, which are prompts that no endpoint has cached. The best score is
// for the endpoint that has received no cold prompt for the longest time. For other prompts, all scores are
// 0.5.
#include <algorithm>
#include <limits>
#include <vector>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::min();

class NoHitLruScorer : public Scorer {
 public:
  std::size_t producer = 0;  // index in Cycle::overlaps
  std::int64_t lru_size = 1024;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    if (!cold(cycle)) return void(std::ranges::fill(scores, 0.5));
    const auto last = static_cast<double>(candidates.size()) - 1;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      // Rank of the endpoint by its last cold prompt. Endpoints without a cold prompt are first.
      const auto older = std::ranges::count_if(candidates, [&](const Member* other) {
        return used(other->id) < used(candidates[i]->id) ||
               (used(other->id) == used(candidates[i]->id) && other < candidates[i]);
      });
      scores[i] = last > 0 ? 1 - static_cast<double>(older) / last : 1;
    }
  }

  void sent(const Cycle& cycle, EndpointId endpoint) override {
    if (!cold(cycle)) return;
    if (endpoint >= used_.size()) used_.resize(endpoint + std::size_t{1}, kNever);
    used_[endpoint] = ++turns_;
  }
  void forget(EndpointId endpoint) override {
    if (endpoint < used_.size()) used_[endpoint] = kNever;
  }

 private:
  bool cold(const Cycle& cycle) const { return cycle.overlaps[producer].holders.empty(); }

  // Returns the sequence number of the endpoint's last cold prompt, among all cold prompts. Only the last
  // lru_size cold prompts count.
  std::int64_t used(EndpointId endpoint) const {
    if (endpoint >= used_.size() || used_[endpoint] <= turns_ - lru_size) return kNever;
    return used_[endpoint];
  }

  std::int64_t turns_ = 0;
  std::vector<std::int64_t> used_;  // [EndpointId]
};

}  // namespace

std::unique_ptr<Plugin> make_no_hit_lru_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<NoHitLruScorer>();
  std::string producer = "approx-prefix-cache-producer";
  // deprecated: type and name of the producer, or of the scorer that contains it
  std::string old_type, old_name;
  parameters.read("prefixPluginType", old_type);
  parameters.read("prefixPluginName", old_name);
  if (dynamic_cast<Producer*>(plugins.find(old_name))) producer = old_name;
  parameters.read("prefixMatchInfoProducerName", producer);
  parameters.read("lruSize", plugin->lru_size, 1, 1'000'000'000);
  plugin->producer = plugins.producer(producer, parameters, "prefixMatchInfoProducerName");
  return plugin;
}

}  // namespace octavo::fleet
