// The router's policies by name: each is a pipeline over the plugin table.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fleet/decide/pipeline.h"

namespace octavo::fleet {

// The flags of `octavo route` that policies take; names and defaults of SGLang's router.
struct PolicyOptions {
  double cache_threshold = 0.3;             // share of a prompt that must be known there to count as cached
  std::int64_t balance_abs_threshold = 5;  // overloaded: more requests than this above the least loaded, and
  double balance_rel_threshold = 1.5;      // more than this times those of the least loaded
  double kv_overlap_score_weight = 1;       // blocks of prefill that a cached block saves
  double kv_delay_weight = 4;               // cost of a computed block for each delayed request; 0: Dynamo's
  double router_temperature = 0;            // 0: the lowest cost; above: random by cost
  std::int64_t router_ttl_secs = 120;       // for prompts sent to a replica without events
  std::int64_t prefix_token_count = 256;    // first tokens whose hash chooses the replica
  double prefix_hash_load_factor = 1.25;    // replicas above this factor of the mean load are skipped
  std::int64_t max_idle_secs = 4 * 3600;    // until an unused routing key is forgotten
  std::int64_t bucket_adjust_interval_secs = 5;  // between new bounds of the lengths
  std::int64_t max_tree_size = 64 << 20;         // bytes of prompts remembered for an endpoint
};

struct Policy {
  std::string_view name;
  std::string_view summary;
  PipelineConfig (*pipeline)(const PolicyOptions& options);
};

std::span<const Policy> policies();
const Policy* find_policy(std::string_view name);  // null if unknown

}  // namespace octavo::fleet
