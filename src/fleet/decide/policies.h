// The router's policies by name. A policy is a pipeline of plugins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fleet/decide/pipeline.h"

namespace octavo::fleet {

// Policy options of `octavo route`. Names and defaults are those of SGLang's router.
struct PolicyOptions {
  // cache-aware routing prefers an endpoint that has cached at least this fraction of the prompt
  double cache_threshold = 0.3;
  // An endpoint is overloaded if its requests exceed those of the least loaded endpoint by more than this
  // number, and also by more than the factor balance_rel_threshold.
  std::int64_t balance_abs_threshold = 5;
  double balance_rel_threshold = 1.5;
  double kv_overlap_score_weight = 1;  // a cached block saves this number of prefill blocks
  // cost of the delay by one computed block, for each request in flight at the endpoint; 0: no such cost, as
  // in NVIDIA Dynamo
  double kv_delay_weight = 2;
  // 0: pick the endpoint with the lowest cost; above 0: pick randomly, and low costs are more likely
  double router_temperature = 0;
  // time for which a prompt counts as cached at an endpoint without KV cache events
  std::int64_t router_ttl_secs = 120;
  // policy prefix_hash: number of tokens at the beginning of the prompt that are hashed
  std::int64_t prefix_token_count = 256;
  // policy prefix_hash: skips an endpoint whose load is more than this multiple of the mean load
  double prefix_hash_load_factor = 1.25;
  std::int64_t max_idle_secs = 4 * 3600;   // an unused routing key is dropped after this time
  std::string assignment_mode = "random";  // policy manual: how to pick the endpoint of a new routing key
  // policy bucket: interval between updates of the bounds of prompt lengths
  std::int64_t bucket_adjust_interval_secs = 5;
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
