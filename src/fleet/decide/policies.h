// The router's policies by name. A policy is a pipeline of plugins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fleet/decide/pipeline.h"

namespace octavo::fleet {

// Policy flags of `octavo route`, with the names and defaults of SGLang's router.
struct PolicyOptions {
  // minimum cached fraction of a prompt that makes cache-aware routing prefer an endpoint
  double cache_threshold = 0.3;
  // A replica is overloaded if its requests exceed those of the least loaded replica by this number, and by
  // the factor balance_rel_threshold.
  std::int64_t balance_abs_threshold = 5;
  double balance_rel_threshold = 1.5;
  double kv_overlap_score_weight = 1;  // prefill blocks that a cached block saves
  double kv_delay_weight = 2;  // cost of a computed block for each request that it delays; 0: Dynamo's cost
  double router_temperature = 0;       // 0: pick the lowest cost; above 0: pick randomly by cost
  std::int64_t router_ttl_secs = 120;  // time for which a prompt counts as cached at a replica without events
  std::int64_t prefix_token_count = 256;  // number of first tokens to hash
  // maximum load of a replica, relative to the mean; replicas above it are skipped
  double prefix_hash_load_factor = 1.25;
  std::int64_t max_idle_secs = 4 * 3600;   // time after which an unused routing key is dropped
  std::string assignment_mode = "random";  // policy manual: how to pick the replica of a new routing key
  std::int64_t bucket_adjust_interval_secs = 5;  // time between updates of the length bounds
  std::int64_t max_tree_size = 64 << 20;         // maximum bytes of stored prompts for each endpoint
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  PipelineConfig (*pipeline)(const PolicyOptions& options);
};

std::span<const Policy> policies();
const Policy* find_policy(std::string_view name);  // null: unknown name

}  // namespace octavo::fleet
