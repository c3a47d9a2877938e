// header-label-affinity-scorer: prefers endpoints whose label equals a request header.
#include <algorithm>
#include <cctype>

#include "fleet/decide/parameters.h"
#include "fleet/decide/plugin_table.h"
#include "fleet/decide/plugins.h"

namespace octavo::fleet {
namespace {

class HeaderLabelAffinityScorer : public Scorer {
 public:
  std::string header, label;

  void score(Cycle& cycle, std::span<const Member* const> candidates, std::span<double> scores) override {
    const std::string_view wanted = cycle.request.header(header).value_or("");
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const auto& labels = candidates[i]->endpoint->labels;
      const auto found = labels.find(label);
      scores[i] = !wanted.empty() && found != labels.end() && found->second == wanted ? 1 : 0;
    }
  }
};

}  // namespace

std::unique_ptr<Plugin> make_header_label_affinity_scorer(Parameters& parameters, Plugins& plugins) {
  auto plugin = std::make_unique<HeaderLabelAffinityScorer>();
  parameters.read("headerName", plugin->header);
  parameters.read("labelKey", plugin->label);
  if (plugin->header.empty()) parameters.fail("headerName", "must be given");
  if (plugin->label.empty()) parameters.fail("labelKey", "must be given");
  plugin->header = plugins.reads_header(plugin->header);
  return plugin;
}

}  // namespace octavo::fleet
