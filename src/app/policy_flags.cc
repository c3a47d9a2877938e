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
  command
      .add_option("--cache-threshold", o.cache_threshold,
                  "cache_aware: share of a prompt that a replica must have been sent before to get it")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--balance-abs-threshold", o.balance_abs_threshold,
                  "cache_aware: a replica is overloaded with more than this number of requests above the least "
                  "loaded one, and")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--balance-rel-threshold", o.balance_rel_threshold,
                  "... with more than this number of times the requests of the least loaded one")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--kv-overlap-score-weight", o.kv_overlap_score_weight,
                  "kv_aware: how many blocks to compute a cached block saves; 0: only load counts")
      ->check(CLI::Range(0.0, 100.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--kv-delay-weight", o.kv_delay_weight,
          "kv_aware: what a block that is computed once more costs each request in flight there, which it "
          "delays; 0: nothing, NVIDIA Dynamo's cost")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--router-temperature", o.router_temperature,
                  "kv_aware: 0 takes the cheapest replica; above it, the cheaper the likelier")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--router-ttl-secs", o.router_ttl_secs,
                  "kv_aware: how long a replica that tells no KV events is taken to hold what it was sent")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--prefix-token-count", o.prefix_token_count,
                  "prefix_hash: first tokens of a prompt that say who gets it")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--prefix-hash-load-factor", o.prefix_hash_load_factor,
                  "prefix_hash: a replica above this multiple of the mean load gets no more requests")
      ->check(CLI::Range(1.0, 1000.0))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-idle-secs", o.max_idle_secs,
                  "manual: how long an unused routing key stays with its replica")
      ->check(CLI::Range(1, 31'536'000))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--bucket-adjust-interval-secs", o.bucket_adjust_interval_secs,
                  "bucket: how often the bounds between lengths are set anew")
      ->check(CLI::Range(1, 86'400))
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--max-tree-size", o.max_tree_size,
                  "cache_aware: bytes of prompts remembered for each replica")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 36))
      ->capture_default_str()
      ->group(group);
}

}  // namespace octavo
