#include "fleet/decide/profile.h"

#include <algorithm>

#include "base/quoted_text.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kDefaultPicker = "max-score-picker";

}  // namespace

Result<Profile> Profile::make(const Plugins& plugins, std::span<const StepConfig> steps,
                              std::string_view where) {
  Profile profile;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const StepConfig& step = steps[i];
    const std::string path = fmt::format("{}.plugins[{}]", where, i);
    Plugin* plugin = plugins.find(step.plugin);
    if (!plugin)
      return invalid(path + ".pluginRef", "the plugin {} does not exist", quoted_text(step.plugin));
    if (!(step.weight >= 0)) return invalid(path + ".weight", "must be at least 0");
    auto* filter = dynamic_cast<Filter*>(plugin);
    auto* scorer = dynamic_cast<Scorer*>(plugin);
    auto* picker = dynamic_cast<Picker*>(plugin);
    const StepName& name = *plugins.step(step.plugin);
    if (filter) profile.filters_.push_back({name, filter, 1});
    if (scorer) profile.scorers_.push_back({name, scorer, step.weight});
    if (picker && profile.picker_.part)
      return invalid(path + ".pluginRef", "is a second picker, but a profile must have exactly one");
    if (picker) profile.picker_ = {name, picker, 1};
    if (!filter && !scorer && !picker)
      return invalid(path + ".pluginRef", "{} is not a filter, scorer or picker", quoted_text(step.plugin));
  }
  if (!profile.picker_.part) {
    auto* picker = dynamic_cast<Picker*>(plugins.find(kDefaultPicker));
    if (!picker) return invalid(where, "has no picker");
    profile.picker_ = {*plugins.step(kDefaultPicker), picker, 1};
  }
  return profile;
}

void Profile::run(Cycle& cycle, Candidates& candidates, Decision& decision) {
  decision.clear();
  for (const auto& step : filters_) {
    timed(cycle.timer, "Filter", step.name, [&] { step.part->filter(cycle, candidates); });
    if (!decision.explain) continue;
    Decision::Step& logged = decision.steps.emplace_back(step.name.name, step.weight);
    for (const Member* member : candidates) logged.scores.push_back({member->id, 0});
  }
  if (candidates.empty()) return;
  for (const Member* member : candidates) decision.ranking.push_back({member->id, 0});
  for (const auto& step : scorers_) {
    scores_.assign(candidates.size(), 0);
    timed(cycle.timer, "Scorer", step.name, [&] { step.part->score(cycle, candidates, scores_); });
    for (std::size_t i = 0; i < scores_.size(); ++i)
      decision.ranking[i].total += step.weight * std::clamp(scores_[i], 0.0, 1.0);
    if (!decision.explain) continue;
    Decision::Step& logged = decision.steps.emplace_back(step.name.name, step.weight);
    for (std::size_t i = 0; i < scores_.size(); ++i) logged.scores.push_back({candidates[i]->id, scores_[i]});
  }
  timed(cycle.timer, "Picker", picker_.name, [&] { picker_.part->pick(cycle, decision.ranking); });
  decision.picked = std::min(decision.ranking.size(), static_cast<std::size_t>(picker_.part->endpoints_max));
}

}  // namespace octavo::fleet
