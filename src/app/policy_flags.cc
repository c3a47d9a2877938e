#include "app/policy_flags.h"

#include <fmt/format.h>

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

void add_policy_flags(CLI::App& command, const std::string& group, fleet::PolicyOptions& o) {
  const auto add = [&](const char* name, auto& value, const CLI::Validator& range, const char* help) {
    command.add_option(name, value, help)->check(range)->capture_default_str()->group(group);
  };
  add("--cache-threshold", o.cache_threshold, CLI::Range(0.0, 1.0),
      "cache_aware: share of a prompt that a replica must have been sent before to get it");
  add("--balance-abs-threshold", o.balance_abs_threshold, CLI::NonNegativeNumber,
      "cache_aware: a replica is overloaded with more than this number of requests above the least "
      "loaded one, and");
  add("--balance-rel-threshold", o.balance_rel_threshold, CLI::Range(1.0, 1e6),
      "... with more than this number of times the requests of the least loaded one");
  add("--kv-overlap-score-weight", o.kv_overlap_score_weight, CLI::Range(0.0, 100.0),
      "kv_aware: how many blocks to compute a cached block saves; 0: only load counts");
  add("--kv-delay-weight", o.kv_delay_weight, CLI::Range(0.0, 1000.0),
      "kv_aware: what a block that is computed once more costs each request in flight there, which "
      "it delays; 0: nothing, NVIDIA Dynamo's cost");
  add("--router-temperature", o.router_temperature, CLI::Range(0.0, 1000.0),
      "kv_aware: 0 takes the cheapest replica; above it, the cheaper the likelier");
  add("--router-ttl-secs", o.router_ttl_secs, CLI::Range(1, 86'400),
      "kv_aware: how long a replica that tells no KV events is taken to hold what it was sent");
  add("--prefix-token-count", o.prefix_token_count, CLI::Range(1, 1 << 20),
      "prefix_hash: first tokens of a prompt that say who gets it");
  add("--prefix-hash-load-factor", o.prefix_hash_load_factor, CLI::Range(1.0, 1000.0),
      "prefix_hash: a replica above this multiple of the mean load gets no more requests");
  add("--max-idle-secs", o.max_idle_secs, CLI::Range(1, 31'536'000),
      "manual: how long an unused routing key stays with its replica");
  add("--bucket-adjust-interval-secs", o.bucket_adjust_interval_secs, CLI::Range(1, 86'400),
      "bucket: how often the bounds between lengths are set anew");
  add("--max-tree-size", o.max_tree_size, CLI::Range(std::int64_t{1}, std::int64_t{1} << 36),
      "cache_aware: bytes of prompts remembered for each replica");
}

}  // namespace octavo
