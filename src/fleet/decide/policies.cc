#include "fleet/decide/policies.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

// A pipeline that runs each plugin once, in the given order.
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
      in_order({{"",
                 "kv-cost-scorer",
                 {{"overlapScoreCredit", o.kv_overlap_score_weight}, {"delayWeight", o.kv_delay_weight}}},
                {"", "softmax-picker", {{"temperature", o.router_temperature}}}});
  config.plugins.push_back({"", "precise-prefix-cache-producer", {{"ttl", o.router_ttl_secs}}});
  return config;
}

PipelineConfig prefix_hash(const PolicyOptions& o) {
  return in_order(
      {{"",
        "prefix-hash-picker",
        {{"prefixTokenCount", o.prefix_token_count}, {"loadFactor", o.prefix_hash_load_factor}}}});
}

PipelineConfig consistent_hashing(const PolicyOptions&) {
  return in_order({{"", "consistent-hashing-picker"}});
}

PipelineConfig manual(const PolicyOptions& o) {
  return in_order({{"", "sticky-key-picker", {{"maxIdle", o.max_idle_secs}}}});
}

PipelineConfig bucket(const PolicyOptions& o) {
  return in_order({{"", "length-bucket-picker", {{"interval", o.bucket_adjust_interval_secs}}}});
}

constexpr Policy kPolicies[] = {
    {"bucket", "prompts of like length to the same, each with the same work", bucket},
    {"cache_aware", "of those that are not overloaded, to who was sent the longest prefix of the prompt",
     cache_aware},
    {"consistent_hashing",
     "to whom the client's key belongs: X-SMG-Target-Worker, X-SMG-Routing-Key, else who it is",
     consistent_hashing},
    {"kv_aware", "to who has the least to compute, by what each holds of the prompt and has in flight",
     kv_aware},
    {"least_loaded", "to who has the fewest unfinished requests", least_loaded},
    {"manual", "to who got the same X-SMG-Routing-Key before", manual},
    {"power_of_two", "to the less loaded of two drawn at random", power_of_two},
    {"prefix_hash", "to whom the prompt's first tokens belong, unless it has too much of the load",
     prefix_hash},
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
