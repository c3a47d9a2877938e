#include "fleet/balance/explanation.h"

#include <boost/json/array.hpp>
#include <utility>

#include "base/exact_json.h"

namespace octavo::fleet {

std::string explain(const Cycle& cycle, std::string_view policy, const Decision& decision) {
  namespace json = boost::json;
  const FleetView& view = cycle.view;
  const auto named = [&](const std::vector<Score>& scores) {
    json::object out;
    for (const Score& score : scores)
      if (const Member* member = view.find(score.endpoint)) out[member->endpoint->label()] = score.total;
    return out;
  };
  json::array steps;
  for (const Decision::Step& step : decision.steps)
    steps.push_back({{"plugin", step.plugin}, {"weight", step.weight}, {"scores", named(step.scores)}});
  json::object cached;
  for (const Member& member : view.members)
    if (const std::int64_t tokens = cycle.cached_tokens(member.id)) cached[member.endpoint->label()] = tokens;
  const Member* chosen = view.find(decision.chosen());
  return exact_json_text(
      json::object{{"policy", policy},
                   {"chosen", chosen ? json::value(chosen->endpoint->label()) : json::value()},
                   {"total", named(decision.ranking)},
                   {"cached_tokens", std::move(cached)},
                   {"steps", std::move(steps)}});
}

}  // namespace octavo::fleet
