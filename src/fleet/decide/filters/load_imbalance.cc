// load-imbalance-filter: removes endpoints that have much more load than the least loaded endpoint. So an
// endpoint attracts requests with a cached prefix only while it has capacity. SGLang's router instead
// ignores the prefixes at all endpoints while the load is unequal.
#include <algorithm>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class LoadImbalanceFilter : public Filter {
 public:
  std::int64_t abs_threshold = 64;
  double rel_threshold = 1.5;

  void filter(Cycle& cycle, Candidates& candidates) override {
    if (candidates.empty()) return;
    const auto requests = [&](const Member* m) { return cycle.load(*m).requests; };
    const int low = requests(*std::ranges::min_element(candidates, {}, requests));
    std::erase_if(candidates, [&](const Member* m) {
      return requests(m) - low > abs_threshold && requests(m) > rel_threshold * low;
    });
  }
};

}  // namespace

std::unique_ptr<Plugin> make_load_imbalance_filter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<LoadImbalanceFilter>();
  parameters.read("absThreshold", plugin->abs_threshold, 0, 1'000'000);
  parameters.read("relThreshold", plugin->rel_threshold, 1, 1e6);
  return plugin;
}

}  // namespace octavo::fleet
