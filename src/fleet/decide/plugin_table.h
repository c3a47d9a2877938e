// The table of all plugins: one row each.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "fleet/decide/plugin.h"

namespace octavo::fleet {

class Parameters;
class Plugins;

// `plugins`: to find what this one builds on, see Plugins::producer.
using MakePlugin = std::unique_ptr<Plugin> (*)(Parameters& parameters, Plugins& plugins);

struct PluginRow {
  std::string_view type;  // llm-d's name where it has one
  MakePlugin make;        // never null; mistakes are left in the parameters
};

std::span<const PluginRow> plugin_table();

// The error for a type that no table has: it lists similar types of this table and of `others`.
std::unexpected<Error> unknown_plugin(std::string_view field, std::string_view type,
                                      std::vector<std::string_view> others = {});

// One function for each row; a plugin's file defines its own.
std::unique_ptr<Plugin> make_active_request_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_agent_identity(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_burst_prefix_producer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_concurrency_detector(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_consistent_hashing_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_context_length_aware(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_decode_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_encode_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_endpoint_attribute_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_endpoint_attribute_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_header_based_testing_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_header_label_affinity_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_kv_cache_utilization_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_kv_cost_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_label_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_label_selector_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_latency_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_latency_slo_admitter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_length_bucket_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_load_aware_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_load_imbalance_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_lora_affinity_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_max_score_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_media_cache_producer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_media_cache_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_no_hit_lru_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_p2p_source(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_precise_prefix_producer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_precise_prefix_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_predicted_latency_producer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_prefill_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_prefix_cache_affinity_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_prefix_cache_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_prefix_hash_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_probabilistic_admitter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_queue_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_random_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_random_subset_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_recent_prefix_producer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_round_robin_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_running_requests_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_session_affinity_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_session_affinity_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_session_id_producer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_slo_headroom_tier_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_softmax_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_sticky_key_picker(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_text_prefix_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_token_load_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_topology_affinity_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_topology_affinity_scorer(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_topology_extractor(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_utilization_detector(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_utilization_filter(Parameters&, Plugins&);
std::unique_ptr<Plugin> make_weighted_random_picker(Parameters&, Plugins&);

}  // namespace octavo::fleet
