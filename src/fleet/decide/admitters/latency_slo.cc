// latency-slo-admitter: refuses a request with a priority below 0 and latency limits in its headers, if
// every endpoint is predicted to miss the limits. An idle endpoint always admits the request, because
// predictions for an empty KV cache are unreliable.
#include <algorithm>

#include "fleet/decide/latency.h"
#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr double kColdKvUsage = 0.02;

class LatencySloAdmitter : public Admitter {
 public:
  const LatencyPredictor* predictor = nullptr;

  std::optional<std::string> refusal(Cycle& cycle, int priority, const Candidates& candidates) override {
    const auto limit_of = [&](std::string_view name, std::string_view old_name) {
      return cycle.request.header(name) || cycle.request.header(old_name);
    };
    if (priority >= 0 || !(limit_of("x-llm-d-slo-ttft-ms", "x-slo-ttft-ms") ||
                           limit_of("x-llm-d-slo-tpot-ms", "x-slo-tpot-ms")))
      return std::nullopt;
    bool predicted = false;
    for (const Member* member : candidates) {
      const auto room = predictor->headroom(cycle, *member);
      predicted |= room.has_value();
      if ((room && room->positive()) || member->state.running == 0 || member->state.kv_usage < kColdKvUsage)
        return std::nullopt;
    }
    if (!predicted) return std::nullopt;
    return "no valid endpoint available to serve the request";
  }
};

}  // namespace

std::unique_ptr<Plugin> make_latency_slo_admitter(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<LatencySloAdmitter>();
  plugin->predictor = find_predictor(parameters, plugins);
  return plugin;
}

}  // namespace octavo::fleet
