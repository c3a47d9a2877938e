// probabilistic-admitter: refuses requests with a priority below 0, with the probability min(1, k *
// saturation^power). The saturation is that of the candidates.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

class ProbabilisticAdmitter : public Admitter {
 public:
  std::int64_t queue_depth_threshold = 5;
  double kv_usage_threshold = 0.8;
  double power = 5;
  double k = 300;

  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) override {
    if (priority >= 0) return std::nullopt;
    double saturation = 0;
    for (const Member* member : candidates) {
      const EndpointState& state = member->state;
      saturation += state.observed_us == kNeverObserved
                        ? 1
                        : std::max(state.waiting / static_cast<double>(queue_depth_threshold),
                                   state.kv_usage / kv_usage_threshold);
    }
    saturation /= static_cast<double>(candidates.size());
    const double likely = std::min(1.0, std::pow(saturation, power) * k);
    if (cycle.draws.unit() >= likely) return std::nullopt;
    return fmt::format("probabilistic-admitter: rejected, saturation={:.3f} prob={:.2f}", saturation, likely);
  }
};

}  // namespace

std::unique_ptr<Plugin> make_probabilistic_admitter(Parameters& parameters, Plugins&) {
  auto plugin = std::make_unique<ProbabilisticAdmitter>();
  parameters.read("queueDepthThreshold", plugin->queue_depth_threshold, 1, std::int64_t{1} << 40);
  parameters.read("kvCacheUtilThreshold", plugin->kv_usage_threshold, 1e-6, 1e6);
  parameters.read("power", plugin->power, 1e-6, 1e6);
  parameters.read("k", plugin->k, 1e-9, 1e12);
  return plugin;
}

}  // namespace octavo::fleet
