#include "fleet/pick/old_metric_names.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace octavo::fleet {
namespace {

struct Renamed {
  std::string_view name, old_name;
};
constexpr Renamed kRenamed[] = {
    {"llm_d_epp_average_kv_cache_utilization", "inference_pool_average_kv_cache_utilization"},
    {"llm_d_epp_average_queue_size", "inference_pool_average_queue_size"},
    {"llm_d_epp_average_running_requests", "inference_pool_average_running_requests"},
    {"llm_d_epp_flow_control_pool_saturation", "inference_extension_flow_control_pool_saturation"},
    {"llm_d_epp_flow_control_queue_bytes", "inference_extension_flow_control_queue_bytes"},
    {"llm_d_epp_flow_control_queue_size", "inference_extension_flow_control_queue_size"},
    {"llm_d_epp_flow_control_request_queue_duration_seconds",
     "inference_extension_flow_control_request_queue_duration_seconds"},
    {"llm_d_epp_per_endpoint_queue_size", "inference_pool_per_pod_queue_size"},
    {"llm_d_epp_plugin_duration_seconds", "inference_extension_plugin_duration_seconds"},
    {"llm_d_epp_prefix_indexer_hit_bytes", "inference_extension_prefix_indexer_hit_bytes"},
    {"llm_d_epp_prefix_indexer_hit_ratio", "inference_extension_prefix_indexer_hit_ratio"},
    {"llm_d_epp_prefix_indexer_size", "inference_extension_prefix_indexer_size"},
    {"llm_d_epp_ready_endpoints", "inference_pool_ready_pods"},
    {"llm_d_epp_request_duration_seconds", "inference_objective_request_duration_seconds"},
    {"llm_d_epp_request_error_total", "inference_objective_request_error_total"},
    {"llm_d_epp_request_input_tokens", "inference_objective_input_tokens"},
    {"llm_d_epp_request_output_tokens", "inference_objective_output_tokens"},
    {"llm_d_epp_request_running", "inference_objective_running_requests"},
    {"llm_d_epp_request_size_bytes", "inference_objective_request_sizes"},
    {"llm_d_epp_request_total", "inference_objective_request_total"},
    {"llm_d_epp_response_size_bytes", "inference_objective_response_sizes"},
    {"llm_d_epp_scheduler_attempts_total", "inference_extension_scheduler_attempts_total"},
    {"llm_d_epp_scheduler_e2e_duration_seconds", "inference_extension_scheduler_e2e_duration_seconds"},
};

}  // namespace

void add_old_metric_names(std::string& page) {
  constexpr std::string_view kHelp = "# HELP ";
  std::string added;
  const Renamed* renamed = nullptr;  // null: the current line's metric was not renamed
  for (std::string_view rest = page; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    if (line.starts_with(kHelp)) {
      const std::string_view name = line.substr(kHelp.size(), line.find(' ', kHelp.size()) - kHelp.size());
      renamed = std::ranges::find(kRenamed, name, &Renamed::name);
      if (renamed == std::end(kRenamed)) renamed = nullptr;
    }
    if (!renamed) continue;
    const std::size_t at = line.find(renamed->name);
    added.append(line.substr(0, at)).append(renamed->old_name).append(line.substr(at + renamed->name.size()));
    added += '\n';
  }
  page += added;
}

}  // namespace octavo::fleet
