#include "fleet/decide/policies.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

// A pipeline whose plugins run in the order given, each once.
PipelineConfig in_order(std::vector<PluginConfig> plugins) {
  PipelineConfig config{.plugins = std::move(plugins), .steps = {}};
  for (const PluginConfig& plugin : config.plugins) config.steps.push_back({.plugin = plugin.type});
  return config;
}

PipelineConfig random(const PolicyOptions&) { return in_order({{"", "random-picker"}}); }

PipelineConfig round_robin(const PolicyOptions&) { return in_order({{"", "round-robin-picker"}}); }

PipelineConfig least_loaded(const PolicyOptions&) { return in_order({{"", "active-request-scorer"}}); }

PipelineConfig power_of_two(const PolicyOptions&) {
  return in_order({{"", "random-subset-filter", {{"count", 2}}}, {"", "active-request-scorer"}});
}

PipelineConfig cache_aware(const PolicyOptions& o) {
  return in_order({{"",
                    "load-imbalance-filter",
                    {{"absThreshold", o.balance_abs_threshold}, {"relThreshold", o.balance_rel_threshold}}},
                   {"",
                    "text-prefix-filter",
                    {{"matchThreshold", o.cache_threshold}, {"maxBytesPerEndpoint", o.max_tree_size}}},
                   {"", "active-request-scorer"}});
}

PipelineConfig kv_aware(const PolicyOptions& o) {
  PipelineConfig config =
      in_order({{"", "kv-cost-scorer", {{"overlapScoreCredit", o.kv_overlap_score_weight}}},
                {"", "softmax-picker", {{"temperature", o.router_temperature}}}});
  config.plugins.push_back({"", "precise-prefix-cache-producer", {{"ttl", o.router_ttl_secs}}});
  return config;
}

constexpr Policy kPolicies[] = {
    {"cache_aware", "to who was sent the longest prefix of the prompt, unless load is uneven", cache_aware},
    {"kv_aware", "to who has the least to compute, by what each holds of the prompt and has in flight",
     kv_aware},
    {"least_loaded", "to who has the fewest unfinished requests", least_loaded},
    {"power_of_two", "to the less loaded of two drawn at random", power_of_two},
    {"random", "to anyone", random},
    {"round_robin", "to each in turn", round_robin},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy* find_policy(std::string_view name) {
  const auto found = std::ranges::find(kPolicies, name, &Policy::name);
  return found != std::end(kPolicies) ? &*found : nullptr;
}

}  // namespace octavo::fleet
