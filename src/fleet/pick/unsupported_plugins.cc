#include "fleet/pick/unsupported_plugins.h"

#include <utility>

namespace octavo::fleet {
namespace {

constexpr std::string_view kOneCluster =
    "a picker has only one pool: run one picker for each cluster, and let the gateway split the traffic";

constexpr std::pair<std::string_view, std::string_view> kUnsupported[] = {
    {"decision-tree-filter",
     "use queue-scorer, kv-cache-utilization-scorer and lora-affinity-scorer with weights and "
     "max-score-picker"},
    {"disaggregatedset-rollout-pod-extractor", "use label-selector-filter with the label of the revision"},
    {"disaggregatedset-rollout-screener", "use label-selector-filter with the label of the revision"},
    {"k8s-notification-source", "pods, pools and objectives are watched without it: remove it"},
    {"latency-observation-scorer-hub", kOneCluster},
    {"latency-observer-producer-hub", kOneCluster},
    {"least-kv-cache-filter", "use kv-cache-utilization-scorer"},
    {"least-queue-filter", "use queue-scorer"},
    {"lora-affinity-filter", "use lora-affinity-scorer"},
    {"low-queue-filter", "use utilization-filter with the metric waiting-queue"},
    {"multicluster-approx-prefix-cache-producer", kOneCluster},
    {"multicluster-file-discovery", kOneCluster},
    {"multicluster-kv-cache-utilization-scorer", kOneCluster},
    {"multicluster-metrics-data-source", kOneCluster},
    {"multicluster-metrics-extractor", kOneCluster},
    {"multicluster-prefix-cache-scorer", kOneCluster},
    {"multicluster-queue-scorer", kOneCluster},
    {"multicluster-session-affinity-filter", kOneCluster},
    {"slo-aware-profile-handler", "use single-profile-handler, and latency-scorer in its profile"},
    {"vertexai-parser", "use passthrough-parser, which picks without reading bodies"},
};

}  // namespace

std::string_view why_unsupported(std::string_view type) {
  for (const auto& [unsupported, why] : kUnsupported)
    if (type == unsupported) return why;
  return "";
}

}  // namespace octavo::fleet
