#include "app/metrics_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "accounts/accounts.h"
#include "fleet/pick/pick_metrics.h"
#include "fleet/route/route_metrics.h"
#include "many/model_reports.h"
#include "record/record_counters.h"
#include "request/engine_stats.h"
#include "serve/http_metrics.h"
#include "serve/metrics.h"
#include "serve/process_metrics.h"

namespace octavo {
namespace {

// Makes a table row from each line "# HELP name text" and the line "# TYPE name type" after it.
std::string table(std::string_view page) {
  std::string out = "| name | type | |\n|---|---|---|\n";
  std::string_view name, help;
  while (!page.empty()) {
    const std::size_t end = std::min(page.find('\n'), page.size());
    std::string_view line = page.substr(0, end);
    page.remove_prefix(std::min(end + 1, page.size()));
    if (line.starts_with("# HELP ")) {
      line.remove_prefix(7);
      name = line.substr(0, line.find(' '));
      help = line.substr(name.size() + 1);
    } else if (line.starts_with("# TYPE ")) {
      fmt::format_to(std::back_inserter(out), "| `{}` | {} | {} |\n", name, line.substr(line.rfind(' ') + 1),
                     help);
    }
  }
  return out;
}

}  // namespace

std::string metrics_page() {
  // Makes an engine with all optional features, so that the page has the metrics that only some engines have.
  std::vector<EngineStats> engines(1);
  engines.front().kv_transfer.enabled = true;
  engines.front().kv_host_tier.enabled = engines.front().kv_tier.enabled = true;
  engines.front().kv_residency.enabled = engines.front().work.enabled = true;
  EngineInfo info;
  info.max_loras = 1;
  const AccountOptions accounts{.access_log = {}, .prices = Prices{.currency = "EUR"}};
  return fmt::format(
      "# Metrics\n\n"
      "`octavo serve --list-metrics` prints this page. Each program returns its metrics at `GET /metrics`, "
      "in "
      "Prometheus' text format.\n\n"
      "## octavo serve\n\n"
      "The names are those of vLLM. Every `vllm:` series has the labels `model_name` and `engine`; its "
      "counters "
      "start at 0 when the engine's process starts. `http_` series have the labels `handler` (the route), "
      "`method` and `status` (for example `2xx`); they do not count probes and `/metrics`.\n\n"
      "{}\n"
      "With several models, the server also has these metrics:\n\n"
      "{}\n"
      "## octavo route\n\n"
      "The names are those of SGLang's router if it has the metric. In addition to the table, each worker "
      "has "
      "the gauges `smg_worker_requests_active`, `smg_worker_health`, `smg_worker_cb_state`, "
      "`octavo_route_worker_waiting` and `octavo_route_worker_kv_usage`. Each tenant of `--tenants` has the "
      "counter `octavo_route_tenant_requests_total` (with the label `outcome`) and the gauge "
      "`octavo_route_tenant_requests_active`.\n\n"
      "{}\n"
      "## octavo pick\n\n"
      "The names are those of llm-d.\n\n"
      "{}",
      table(Metrics("model", 1, accounts).text(engines, info) + HttpMetrics().text() + process_metrics() +
            record_metrics()),
      table(many::table_metrics(std::vector<std::string>{"model"}, std::vector<many::ModelStatus>(1), 0, 0)),
      table(fleet::RouteMetrics(accounts).text()), table(fleet::PickMetrics().text(fleet::FleetView{})));
}

}  // namespace octavo
