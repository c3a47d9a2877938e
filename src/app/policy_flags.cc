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
  std::string text = "How a replica is chosen";
  for (const fleet::Policy& policy : fleet::policies())
    text += fmt::format("; {}: {}", policy.name, policy.summary);
  return text;
}

namespace {

using fleet::PolicyOptions;

constexpr FlagRow<PolicyOptions> kPolicyFlags[] = {
    {"--cache-threshold", flag::to<&PolicyOptions::cache_threshold>,
     "cache_aware: share of a prompt that a replica must have been sent before to get it",
     flag::range(0.0, 1.0)},
    {"--balance-abs-threshold", flag::to<&PolicyOptions::balance_abs_threshold>,
     "cache_aware: a replica is overloaded with more than this number of requests above the least "
     "loaded one, and",
     NotNegative{}},
    {"--balance-rel-threshold", flag::to<&PolicyOptions::balance_rel_threshold>,
     "... with more than this number of times the requests of the least loaded one", flag::range(1.0, 1e6)},
    {"--kv-overlap-score-weight", flag::to<&PolicyOptions::kv_overlap_score_weight>,
     "kv_aware: how many blocks to compute a cached block saves; 0: only load counts",
     flag::range(0.0, 100.0)},
    {"--kv-delay-weight", flag::to<&PolicyOptions::kv_delay_weight>,
     "kv_aware: what a block that is computed once more costs each request in flight there, which it "
     "delays; 0: nothing, NVIDIA Dynamo's cost",
     flag::range(0.0, 1000.0)},
    {"--router-temperature", flag::to<&PolicyOptions::router_temperature>,
     "kv_aware: 0 takes the cheapest replica; above it, the cheaper the likelier", flag::range(0.0, 1000.0)},
    {"--router-ttl-secs", flag::to<&PolicyOptions::router_ttl_secs>,
     "kv_aware: how long a replica that tells no KV events is taken to hold what it was sent",
     flag::range(1, 86'400)},
    {"--prefix-token-count", flag::to<&PolicyOptions::prefix_token_count>,
     "prefix_hash: first tokens of a prompt that say who gets it", flag::range(1, 1 << 20)},
    {"--prefix-hash-load-factor", flag::to<&PolicyOptions::prefix_hash_load_factor>,
     "prefix_hash: a replica above this multiple of the mean load gets no more requests",
     flag::range(1.0, 1000.0)},
    {"--max-idle-secs", flag::to<&PolicyOptions::max_idle_secs>,
     "manual: how long an unused routing key stays with its replica", flag::range(1, 31'536'000)},
    {"--bucket-adjust-interval-secs", flag::to<&PolicyOptions::bucket_adjust_interval_secs>,
     "bucket: how often the bounds between lengths are set anew", flag::range(1, 86'400)},
    {"--max-tree-size", flag::to<&PolicyOptions::max_tree_size>,
     "cache_aware: bytes of prompts remembered for each replica",
     flag::range(std::int64_t{1}, std::int64_t{1} << 36)},
};

}  // namespace

void add_policy_flags(CLI::App& command, const std::string& group, fleet::PolicyOptions& options) {
  add_flags(command, options, group, kPolicyFlags);
}

}  // namespace octavo
