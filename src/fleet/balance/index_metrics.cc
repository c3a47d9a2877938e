#include "fleet/balance/index_metrics.h"

#include "fleet/observe/metric_family.h"

namespace octavo::fleet {

void write_index_metrics(std::string& out, const Balancer& balancer) {
  const auto endpoints = static_cast<std::int64_t>(balancer.view()->members.size());
  CounterFamily sizes, sources;
  for (const auto& [producer, size] : balancer.indexed_prefixes()) {
    const std::string labels = label_text({{"plugin_name", producer.name}, {"plugin_type", producer.type}});
    sizes.add(labels, size.blocks);
    sources.add(labels + ",source=\"events\"", size.reporting);
    sources.add(labels + ",source=\"estimates\"", endpoints - size.reporting);
  }
  sizes.write(out, "llm_d_epp_prefix_indexer_size", "Number of blocks in the index of cached prefixes.",
              "gauge");
  sources.write(out, "octavo_prefix_index_endpoints",
                "Number of endpoints in the index, by source of their blocks.", "gauge");
}

}  // namespace octavo::fleet
