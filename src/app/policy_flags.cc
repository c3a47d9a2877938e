#include "app/policy_flags.h"

#include <fmt/format.h>

#include "local/flag_table.h"

namespace octavo {

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const fleet::Policy& policy : fleet::policies()) names.emplace_back(policy.name);
  return names;
}

std::string policies_text() {
  std::string text = "Policy that chooses a replica";
  for (const fleet::Policy& policy : fleet::policies())
    text += fmt::format("; {}: {}", policy.name, policy.summary);
  return text;
}

namespace {

using fleet::PolicyOptions;

std::vector<std::string> assignment_modes() { return {"random", "min_load", "min_group"}; }

constexpr FlagRow<fleet::SimulationOptions> kPolicyNameFlag[] = {
    {"--policy", flag::to<&fleet::SimulationOptions::policy>, policies_text, OneOfList{policy_names}},
};

constexpr FlagRow<PolicyOptions> kPolicyFlags[] = {
    {"--cache-threshold", flag::to<&PolicyOptions::cache_threshold>,
     "cache_aware: minimum share of the prompt that a replica must have received before",
     flag::range(0.0, 1.0)},
    {"--balance-abs-threshold", flag::to<&PolicyOptions::balance_abs_threshold>,
     "cache_aware: a replica is overloaded if it has this many more requests than the least loaded one, and",
     NotNegative{}},
    {"--balance-rel-threshold", flag::to<&PolicyOptions::balance_rel_threshold>,
     "... more than this factor times the requests of the least loaded one", flag::range(1.0, 1e6)},
    {"--kv-overlap-score-weight", flag::to<&PolicyOptions::kv_overlap_score_weight>,
     "kv_aware: weight of a cached block, in blocks to compute; 0: only load counts",
     flag::range(0.0, 100.0)},
    {"--kv-delay-weight", flag::to<&PolicyOptions::kv_delay_weight>,
     "kv_aware: cost, per request in flight, of a block that must be computed, because it delays them; 0: "
     "NVIDIA Dynamo's cost",
     flag::range(0.0, 1000.0)},
    {"--router-temperature", flag::to<&PolicyOptions::router_temperature>,
     "kv_aware: temperature of a random choice by cost; 0: always the replica with the lowest cost",
     flag::range(0.0, 1000.0)},
    {"--router-ttl-secs", flag::to<&PolicyOptions::router_ttl_secs>,
     "kv_aware: seconds for which a replica without KV events is assumed to hold the prompts that it "
     "received",
     flag::range(1, 86'400)},
    {"--prefix-token-count", flag::to<&PolicyOptions::prefix_token_count>,
     "prefix_hash: number of first tokens whose hash chooses the replica", flag::range(1, 1 << 20)},
    {"--prefix-hash-load-factor", flag::to<&PolicyOptions::prefix_hash_load_factor>,
     "prefix_hash: a replica with more than this factor times the mean load is skipped",
     flag::range(1.0, 1000.0)},
    {"--max-idle-secs", flag::to<&PolicyOptions::max_idle_secs>,
     "manual: seconds until an unused routing key is forgotten", flag::range(1, 31'536'000)},
    {"--assignment-mode", flag::to<&PolicyOptions::assignment_mode>,
     "manual: replica of a new routing key; random; min_load: the one with the fewest unfinished requests; "
     "min_group: the one with the fewest keys",
     OneOfList{assignment_modes}},
    {"--bucket-adjust-interval-secs", flag::to<&PolicyOptions::bucket_adjust_interval_secs>,
     "bucket: seconds between two adjustments of the length bounds", flag::range(1, 86'400)},
    {"--max-tree-size", flag::to<&PolicyOptions::max_tree_size>,
     "cache_aware: maximum bytes of remembered prompts per replica",
     flag::range(std::int64_t{1}, std::int64_t{1} << 36)},
};

}  // namespace

void add_policy_flags(CLI::App& command, const std::string& group, fleet::PolicyOptions& options) {
  add_flags(command, options, group, kPolicyFlags);
}

void add_policy_flags(CLI::App& command, const std::string& group, fleet::SimulationOptions& options) {
  add_flags(command, options, group, kPolicyNameFlag);
  add_policy_flags(command, group, options.policy_options);
}

}  // namespace octavo
