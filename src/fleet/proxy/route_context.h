// What all requests of a router share.
#pragma once

#include "fleet/balance/balancer.h"
#include "fleet/proxy/admission.h"
#include "fleet/proxy/monitor.h"
#include "fleet/proxy/prompt_tokens.h"
#include "fleet/proxy/retry_budget.h"
#include "fleet/proxy/route_metrics.h"
#include "fleet/proxy/route_queue.h"
#include "fleet/proxy/router_options.h"
#include "fleet/proxy/stored_responses.h"

namespace octavo::fleet {

struct RouteContext {
  const RouterOptions& options;
  Balancer& balancer;
  RouteMetrics& metrics;
  Monitor& monitor;
  const PromptTokens* tokens;  // null: prompts stay text
  RetryBudget& retries;
  StoredResponses& stored;
  Admission& admission;
  RouteQueue* queue;  // null: no request waits
};

}  // namespace octavo::fleet
