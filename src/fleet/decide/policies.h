// The router's policies by name. Each policy is a pipeline of plugins.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fleet/decide/pipeline.h"

namespace octavo::fleet {

// Flags of `octavo route` for policies, with the names and defaults of SGLang's router.
struct PolicyOptions {
  double cache_threshold = 0.3;            // minimum cached fraction of a prompt for cache-aware routing
  std::int64_t balance_abs_threshold = 5;  // overloaded: the difference to the least loaded replica's
                                           // requests exceeds this number, and
  double balance_rel_threshold = 1.5;      // the ratio to the least loaded replica's requests exceeds this
                                           // factor
  double kv_overlap_score_weight = 1;      // number of prefill blocks that a cached block saves
  double kv_delay_weight = 2;              // cost of a computed block for each delayed request; 0: the cost
                                           // as in Dynamo
  double router_temperature = 0;           // 0: choose the lowest cost; above 0: choose randomly by cost
  std::int64_t router_ttl_secs = 120;      // lifetime of prompts sent to replicas without events
  std::int64_t prefix_token_count = 256;   // number of first tokens whose hash chooses the replica
  double prefix_hash_load_factor = 1.25;   // skip replicas whose load exceeds this multiple of the mean
  std::int64_t max_idle_secs = 4 * 3600;   // time until an unused routing key is dropped
  std::string assignment_mode = "random";  // manual: how the replica of a new routing key is chosen
  std::int64_t bucket_adjust_interval_secs = 5;  // time between updates of the length bounds
  std::int64_t max_tree_size = 64 << 20;         // maximum bytes of prompts to keep for an endpoint
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  PipelineConfig (*pipeline)(const PolicyOptions& options);
};

std::span<const Policy> policies();
const Policy* find_policy(std::string_view name);  // null: unknown name

}  // namespace octavo::fleet
