#include "fleet/decide/pipeline.h"

#include <algorithm>

#include "fleet/decide/eligible.h"

namespace octavo::fleet {

Result<Pipeline> Pipeline::make(PipelineConfig config) {
  if (std::ranges::none_of(config.plugins,
                           [](const PluginConfig& p) { return p.type == "max-score-picker"; }))
    config.plugins.push_back({.name = "", .type = "max-score-picker"});
  TRY(auto plugins, Plugins::make(config.plugins));
  TRY(Profile profile, Profile::make(*plugins, config.steps, "policy"));
  return Pipeline(std::move(plugins), std::move(profile));
}

void Pipeline::choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision) {
  eligible(cycle.view, cycle.request, part, excluded, candidates_);
  rank(cycle, candidates_, decision);
}

void Pipeline::rank(Cycle& cycle, Candidates& candidates, Decision& decision) {
  plugins_->produce(cycle);
  profile_.run(cycle, candidates, decision);
}

}  // namespace octavo::fleet
