// random-subset-filter: keeps the configured number of random candidates.
#include <utility>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class RandomSubsetFilter : public Filter {
 public:
  std::int64_t count = 2;

  void filter(Cycle& cycle, Candidates& candidates) override {
    const auto kept = static_cast<std::size_t>(count);
    if (candidates.size() <= kept) return;
    for (std::size_t i = 0; i < kept; ++i)
      std::swap(candidates[i], candidates[i + cycle.draws.below(candidates.size() - i)]);
    candidates.resize(kept);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_random_subset_filter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<RandomSubsetFilter>();
  parameters.read("count", plugin->count, 1, static_cast<std::int64_t>(kEndpointsMax));
  return plugin;
}

}  // namespace octavo::fleet
