#include "fleet/decide/plugin_table.h"

namespace octavo::fleet {
namespace {

constexpr PluginRow kTable[] = {
    // Admitters
    {"latency-slo-admitter", make_latency_slo_admitter},
    {"probabilistic-admitter", make_probabilistic_admitter},
    // Filters
    {"by-label", make_label_filter},                     // deprecated
    {"by-label-selector", make_label_selector_filter},  // an old name
    {"concurrency-detector", make_concurrency_detector},
    {"decode-filter", make_decode_filter},
    {"encode-filter", make_encode_filter},
    {"endpoint-attribute-filter", make_endpoint_attribute_filter},
    {"header-based-testing-filter", make_header_based_testing_filter},
    {"label-selector-filter", make_label_selector_filter},
    {"load-imbalance-filter", make_load_imbalance_filter},
    {"prefill-filter", make_prefill_filter},
    {"prefix-cache-affinity-filter", make_prefix_cache_affinity_filter},
    {"random-subset-filter", make_random_subset_filter},
    {"session-affinity-filter", make_session_affinity_filter},
    {"slo-headroom-tier-filter", make_slo_headroom_tier_filter},
    {"text-prefix-filter", make_text_prefix_filter},
    {"topology-affinity-filter", make_topology_affinity_filter},
    {"utilization-detector", make_utilization_detector},
    {"utilization-filter", make_utilization_filter},
    // Scorers
    {"active-request-scorer", make_active_request_scorer},
    {"context-length-aware", make_context_length_aware},  // a filter, too
    {"endpoint-attribute-scorer", make_endpoint_attribute_scorer},
    {"header-label-affinity-scorer", make_header_label_affinity_scorer},
    {"kv-cache-utilization-scorer", make_kv_cache_utilization_scorer},
    {"kv-cost-scorer", make_kv_cost_scorer},
    {"latency-scorer", make_latency_scorer},
    {"load-aware-scorer", make_load_aware_scorer},
    {"lora-affinity-scorer", make_lora_affinity_scorer},
    {"mm-embeddings-cache-scorer", make_media_cache_scorer},
    {"no-hit-lru-scorer", make_no_hit_lru_scorer},
    {"precise-prefix-cache-scorer", make_precise_prefix_scorer},  // deprecated; a producer, too
    {"prefix-cache-scorer", make_prefix_cache_scorer},
    {"queue-scorer", make_queue_scorer},
    {"running-requests-size-scorer", make_running_requests_scorer},
    {"session-affinity-scorer", make_session_affinity_scorer},
    {"token-load-scorer", make_token_load_scorer},
    {"topology-affinity-scorer", make_topology_affinity_scorer},
    // Pickers
    {"consistent-hashing-picker", make_consistent_hashing_picker},
    {"length-bucket-picker", make_length_bucket_picker},
    {"max-score-picker", make_max_score_picker},
    {"prefix-hash-picker", make_prefix_hash_picker},
    {"random-picker", make_random_picker},
    {"round-robin-picker", make_round_robin_picker},
    {"softmax-picker", make_softmax_picker},
    {"sticky-key-picker", make_sticky_key_picker},
    {"weighted-random-picker", make_weighted_random_picker},
    // Producers
    {"agent-identity", make_agent_identity},
    {"approx-prefix-cache-producer", make_recent_prefix_producer},
    {"burst-prefix-cache-producer", make_burst_prefix_producer},
    {"mm-embeddings-cache-producer", make_media_cache_producer},
    {"predicted-latency-producer", make_predicted_latency_producer},
    {"p2p-source-producer", make_p2p_source},
    {"precise-prefix-cache-producer", make_precise_prefix_producer},
    {"session-id-producer", make_session_id_producer},
    {"topology-extractor", make_topology_extractor},
};

}  // namespace

std::span<const PluginRow> plugin_table() { return kTable; }

}  // namespace octavo::fleet
