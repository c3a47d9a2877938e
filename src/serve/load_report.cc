#include "serve/load_report.h"

#include <fmt/format.h>

#include "http/message.h"

namespace octavo {

std::string load_report(std::span<const EngineStats> engines, std::string_view format) {
  std::int64_t used = 0, blocks = 0;
  double waiting = 0;
  for (const EngineStats& engine : engines) {
    used += engine.blocks.used;
    blocks += engine.blocks.total;
    waiting += engine.requests.waiting;
  }
  const double usage = blocks > 0 ? static_cast<double>(used) / static_cast<double>(blocks) : 0;
  if (http::equal_ignoring_case(format, "text"))
    return fmt::format("TEXT named_metrics.kv_cache_usage_perc={}, named_metrics.num_requests_waiting={}",
                       usage, waiting);
  if (http::equal_ignoring_case(format, "json"))
    return fmt::format(
        R"(JSON {{"named_metrics": {{"kv_cache_usage_perc": {}, "num_requests_waiting": {}}}}})", usage,
        waiting);
  return "";
}

void report_load(const std::shared_ptr<Service>& service, http::Exchange& exchange) {
  const auto format = exchange.request().headers.find("endpoint-load-metrics-format");
  if (!format) return;
  exchange.amend([service, format = std::string(*format)](http::Response& response) {
    if (response.status != 200) return;
    if (std::string report = load_report(service->engine.stats(), format); !report.empty())
      response.headers.add("endpoint-load-metrics", std::move(report));
  });
}

}  // namespace octavo
