#include "fleet/decide/pipeline.h"

#include <algorithm>

#include "fleet/decide/burst.h"
#include "fleet/decide/eligible.h"
#include "fleet/decide/held_blocks_owner.h"
#include "fleet/decide/kv_source.h"
#include "fleet/decide/latency.h"
#include "fleet/decide/session.h"

namespace octavo::fleet {

Result<Pipeline> Pipeline::make(PipelineConfig config) {
  if (std::ranges::none_of(config.plugins,
                           [](const PluginConfig& p) { return p.type == "max-score-picker"; }))
    config.plugins.push_back({.name = "", .type = "max-score-picker"});
  TRY(auto plugins, Plugins::make(config.plugins));
  TRY(Profile profile, Profile::make(*plugins, config.steps, "policy"));
  TRY(auto by_header, make_by_header(config, *plugins));
  std::optional<Prefill> prefill;
  if (config.prefill) {
    TRY(Profile own, Profile::make(*plugins, config.prefill->steps, "prefill"));
    prefill = Prefill{*std::move(config.prefill), std::move(own)};
  }
  std::optional<Profile> encode;
  if (config.encode) {
    TRY(encode, Profile::make(*plugins, *config.encode, "encode"));
  }
  return Pipeline(std::move(plugins), std::move(profile), std::move(by_header), std::move(prefill),
                  std::move(encode));
}

Result<std::optional<Pipeline::ByHeader>> Pipeline::make_by_header(PipelineConfig& config, Plugins& plugins) {
  if (!config.by_header) return std::nullopt;
  ByHeader made{plugins.reads_header(config.by_header->header), std::move(config.by_header->unnamed), {}};
  for (const auto& [name, steps] : config.by_header->profiles) {
    TRY(Profile profile, Profile::make(plugins, steps, name));
    made.profiles.emplace(name, std::move(profile));
  }
  return made;
}

// Returns the profile that the request header selects, and its name ("" if there is only one profile).
// Returns null if the name is unknown.
std::pair<std::string_view, Profile*> Pipeline::profile_of(const RouteRequest& request) {
  if (!by_header_) return {{}, &profile_};
  std::string_view name = request.header(by_header_->header).value_or("");
  while (name.starts_with(' ')) name.remove_prefix(1);
  while (name.ends_with(' ')) name.remove_suffix(1);
  const auto found = by_header_->profiles.find(name.empty() ? by_header_->unnamed : name);
  if (found == by_header_->profiles.end()) return {{}, nullptr};
  return {found->first, &found->second};
}

template <class Kind>
Kind* Pipeline::find() const {
  for (const std::string& name : plugins_->names())
    if (auto* plugin = dynamic_cast<Kind*>(plugins_->find(name))) return plugin;
  return nullptr;
}

LatencyPredictor* Pipeline::predictor() const { return find<LatencyPredictor>(); }
const BurstPrefixProducer* Pipeline::burst() const { return find<BurstPrefixProducer>(); }

KvSource* Pipeline::kv_source() const { return find<KvSource>(); }
const AgentIdentity* Pipeline::agents() const { return find<AgentIdentity>(); }

HeldBlocks* Pipeline::held_blocks() const {
  auto* owner = find<HeldBlocksOwner>();
  return owner ? &owner->held_blocks() : nullptr;
}

void Pipeline::choose(Cycle& cycle, Role part, std::span<const EndpointId> excluded, Decision& decision) {
  eligible(cycle.view, cycle.request, part, excluded, candidates_);
  rank(cycle, candidates_, decision);
}

void Pipeline::rank(Cycle& cycle, Candidates& candidates, Decision& decision) {
  produce(cycle);
  const auto [name, profile] = profile_of(cycle.request);
  if (!profile) return decision.clear();
  profile->run(cycle, candidates, decision);
  decision.profile = name;
}

void Pipeline::rank_prefill(Cycle& cycle, EndpointId answering, Candidates& candidates, Decision& decision) {
  decision.clear();
  if (!prefill_) return;
  const auto tokens = static_cast<std::int64_t>(cycle.request.tokens.size());
  const PrefillRule& rule = prefill_->rule;
  if (tokens < rule.prompt_tokens || tokens - cycle.cached_tokens(answering) < rule.new_tokens) return;
  cycle.peer = answering;
  prefill_->profile.run(cycle, candidates, decision);
}

void Pipeline::rank_encode(Cycle& cycle, Candidates& candidates, Decision& decision) {
  decision.clear();
  if (encode_ && !cycle.request.media.empty()) encode_->run(cycle, candidates, decision);
}

}  // namespace octavo::fleet
