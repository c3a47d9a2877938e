// The list of plugins: X(type, make function, stability). `type` is llm-d's name if llm-d has the plugin.
// Plugins with stability alpha need --allow-experimental-plugins. The types by-label, by-label-selector and
// precise-prefix-cache-scorer are deprecated names.
// To add a plugin, define its make function in a file in admitters/, filters/, scorers/, pickers/ or
// producers/, and add a row here. The row declares the function and adds an entry to plugin_table().
#pragma once

#define OCTAVO_PLUGINS(X)                                                     \
  /* Admitters */                                                             \
  X("latency-slo-admitter", make_latency_slo_admitter, beta)                  \
  X("probabilistic-admitter", make_probabilistic_admitter, beta)              \
  /* Filters */                                                               \
  X("by-label", make_label_filter, beta)                                      \
  X("by-label-selector", make_label_selector_filter, beta)                    \
  X("concurrency-detector", make_concurrency_detector, beta)                  \
  X("decode-filter", make_decode_filter, beta)                                \
  X("encode-filter", make_encode_filter, beta)                                \
  X("endpoint-attribute-filter", make_endpoint_attribute_filter, alpha)       \
  X("header-based-testing-filter", make_header_based_testing_filter, beta)    \
  X("label-selector-filter", make_label_selector_filter, beta)                \
  X("load-imbalance-filter", make_load_imbalance_filter, beta)                \
  X("prefill-filter", make_prefill_filter, beta)                              \
  X("prefix-cache-affinity-filter", make_prefix_cache_affinity_filter, beta)  \
  X("random-subset-filter", make_random_subset_filter, beta)                  \
  X("session-affinity-filter", make_session_affinity_filter, alpha)           \
  X("slo-headroom-tier-filter", make_slo_headroom_tier_filter, beta)          \
  X("text-prefix-filter", make_text_prefix_filter, beta)                      \
  X("topology-affinity-filter", make_topology_affinity_filter, alpha)         \
  X("utilization-detector", make_utilization_detector, beta)                  \
  X("utilization-filter", make_utilization_filter, alpha)                     \
  /* Scorers */                                                               \
  X("active-request-scorer", make_active_request_scorer, beta)                \
  X("context-length-aware", make_context_length_aware, beta)                  \
  X("endpoint-attribute-scorer", make_endpoint_attribute_scorer, alpha)       \
  X("header-label-affinity-scorer", make_header_label_affinity_scorer, alpha) \
  X("kv-cache-utilization-scorer", make_kv_cache_utilization_scorer, beta)    \
  X("kv-cost-scorer", make_kv_cost_scorer, beta)                              \
  X("latency-scorer", make_latency_scorer, beta)                              \
  X("lmetric-scorer", make_lmetric_scorer, beta)                              \
  X("load-aware-scorer", make_load_aware_scorer, beta)                        \
  X("lora-affinity-scorer", make_lora_affinity_scorer, beta)                  \
  X("mm-embeddings-cache-scorer", make_media_cache_scorer, beta)              \
  X("no-hit-lru-scorer", make_no_hit_lru_scorer, beta)                        \
  X("precise-prefix-cache-scorer", make_precise_prefix_scorer, beta)          \
  X("prefix-cache-scorer", make_prefix_cache_scorer, beta)                    \
  X("queue-scorer", make_queue_scorer, beta)                                  \
  X("running-requests-size-scorer", make_running_requests_scorer, beta)       \
  X("session-affinity-scorer", make_session_affinity_scorer, alpha)           \
  X("token-load-scorer", make_token_load_scorer, beta)                        \
  X("topology-affinity-scorer", make_topology_affinity_scorer, alpha)         \
  /* Pickers */                                                               \
  X("consistent-hashing-picker", make_consistent_hashing_picker, beta)        \
  X("length-bucket-picker", make_length_bucket_picker, beta)                  \
  X("max-score-picker", make_max_score_picker, beta)                          \
  X("prefix-hash-picker", make_prefix_hash_picker, beta)                      \
  X("random-picker", make_random_picker, beta)                                \
  X("round-robin-picker", make_round_robin_picker, beta)                      \
  X("softmax-picker", make_softmax_picker, beta)                              \
  X("sticky-key-picker", make_sticky_key_picker, beta)                        \
  X("weighted-random-picker", make_weighted_random_picker, beta)              \
  /* Producers */                                                             \
  X("agent-identity", make_agent_identity, alpha)                             \
  X("approx-prefix-cache-producer", make_recent_prefix_producer, beta)        \
  X("burst-prefix-cache-producer", make_burst_prefix_producer, alpha)         \
  X("mm-embeddings-cache-producer", make_media_cache_producer, beta)          \
  X("predicted-latency-producer", make_predicted_latency_producer, beta)      \
  X("p2p-source-producer", make_p2p_source, alpha)                            \
  X("precise-prefix-cache-producer", make_precise_prefix_producer, beta)      \
  X("session-id-producer", make_session_id_producer, beta)                    \
  X("topology-extractor", make_topology_extractor, alpha)
