#include "fleet/decide/policies.h"

#include <algorithm>

namespace octavo::fleet {
namespace {

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
  return in_order(
      {{"", "sticky-key-picker", {{"assignment", o.assignment_mode}, {"maxIdle", o.max_idle_secs}}}});
}

PipelineConfig sticky_least_loaded(const PolicyOptions& o) {
  PolicyOptions least = o;
  least.assignment_mode = "min_group";
  return manual(least);
}

PipelineConfig bucket(const PolicyOptions& o) {
  return in_order({{"", "length-bucket-picker", {{"interval", o.bucket_adjust_interval_secs}}}});
}

constexpr Policy kPolicies[] = {
    {"bucket",
     "the replica whose range of prompt lengths contains the prompt (all ranges get the same number of "
     "tokens)",
     bucket},
    {"cache_aware",
     "the replica with the lowest cost, from its unfinished requests and the text that it has received "
     "before (overloaded replicas are skipped)",
     cache_aware},
    {"consistent_hash", "vllm-router's name of consistent_hashing", consistent_hashing},
    {"consistent_hashing",
     "the replica that a hash selects, of the routing key (X-SMG-Routing-Key, X-Session-ID, user or others), "
     "or else of the client's API key, address or cookie (X-SMG-Target-Worker names a worker directly)",
     consistent_hashing},
    {"kv_aware", "the replica with the lowest cost, from cached blocks and work in flight", kv_aware},
    {"least_loaded", "the replica with the fewest unfinished requests", least_loaded},
    {"manual", "the replica that got the first request with this routing key", manual},
    {"power_of_two", "the less loaded of two random replicas", power_of_two},
    {"prefix_hash", "the replica that a hash of the prompt's first tokens selects, unless it is overloaded",
     prefix_hash},
    {"random", "a random replica", random},
    {"round_robin", "each replica in order", round_robin},
    {"sticky_least_loaded", "vllm-router's name of manual with --assignment-mode min_group",
     sticky_least_loaded},
};

}  // namespace

std::span<const Policy> policies() { return kPolicies; }

const Policy* find_policy(std::string_view name) {
  const auto found = std::ranges::find(kPolicies, name, &Policy::name);
  return found != std::end(kPolicies) ? &*found : nullptr;
}

}  // namespace octavo::fleet
