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
     "For cache_aware: minimum fraction of the prompt that a replica must have received before",
     flag::range(0.0, 1.0)},
    {"--balance-abs-threshold", flag::to<&PolicyOptions::balance_abs_threshold>,
     "For cache_aware: a replica is overloaded if its number of requests minus that of the least loaded "
     "replica "
     "is above this limit, and --balance-rel-threshold holds too",
     NotNegative{}},
    {"--balance-rel-threshold", flag::to<&PolicyOptions::balance_rel_threshold>,
     "For cache_aware: a replica is overloaded if its number of requests is more than this factor times that "
     "of "
     "the least loaded replica, and --balance-abs-threshold holds too",
     flag::range(1.0, 1e6)},
    {"--kv-overlap-score-weight", flag::to<&PolicyOptions::kv_overlap_score_weight>,
     "For kv_aware: number of blocks by which a cached block lowers the cost; 0: cached blocks do not count",
     flag::range(0.0, 100.0)},
    {"--kv-delay-weight", flag::to<&PolicyOptions::kv_delay_weight>,
     "For kv_aware: cost of each block to compute per request in flight, because the block delays the "
     "requests; 0: the cost of NVIDIA Dynamo",
     flag::range(0.0, 1000.0)},
    {"--router-temperature", flag::to<&PolicyOptions::router_temperature>,
     "For kv_aware: temperature of a random choice among replicas, weighted by cost; 0: always the replica "
     "with the lowest cost",
     flag::range(0.0, 1000.0)},
    {"--router-ttl-secs", flag::to<&PolicyOptions::router_ttl_secs>,
     "For kv_aware: seconds for which the router assumes that a replica without KV events holds the prompts "
     "that it received",
     flag::range(1, 86'400)},
    {"--prefix-token-count", flag::to<&PolicyOptions::prefix_token_count>,
     "For prefix_hash: number of tokens at the prompt's beginning whose hash chooses the replica",
     flag::range(1, 1 << 20)},
    {"--prefix-hash-load-factor", flag::to<&PolicyOptions::prefix_hash_load_factor>,
     "For prefix_hash: skip a replica whose load is above this factor times the mean load",
     flag::range(1.0, 1000.0)},
    {"--max-idle-secs", flag::to<&PolicyOptions::max_idle_secs>,
     "For manual: seconds after which the router forgets an unused routing key", flag::range(1, 31'536'000)},
    {"--assignment-mode", flag::to<&PolicyOptions::assignment_mode>,
     "For manual: which replica a new routing key gets: random; min_load (the replica with the fewest "
     "unfinished requests); min_group (the replica with the fewest keys)",
     OneOfList{assignment_modes}},
    {"--bucket-adjust-interval-secs", flag::to<&PolicyOptions::bucket_adjust_interval_secs>,
     "For bucket: seconds between two adjustments of the length ranges", flag::range(1, 86'400)},
    {"--max-tree-size", flag::to<&PolicyOptions::max_tree_size>,
     "For cache_aware: maximum number of bytes of remembered prompts per replica",
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
