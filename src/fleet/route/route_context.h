// References to the parts of a router that all requests use.
#pragma once

#include <boost/asio/thread_pool.hpp>

#include "fleet/balance/balancer.h"
#include "fleet/route/admission.h"
#include "fleet/route/monitor.h"
#include "fleet/route/prompt_tokens.h"
#include "fleet/route/retry_budget.h"
#include "fleet/route/route_metrics.h"
#include "fleet/route/route_queue.h"
#include "fleet/route/router_options.h"
#include "fleet/route/session_move.h"
#include "fleet/route/worker_of_id.h"

namespace octavo::fleet {

struct RouteContext {
  const RouterOptions& options;
  Balancer& balancer;
  RouteMetrics& metrics;
  Monitor& monitor;
  const PromptTokens* tokens;  // null: prompts are not tokenised
  RetryBudget& retries;
  WorkerOfId& stored;
  WorkerOfId& sessions;  // by Forwarding::session_key
  RunningMoves& moves;   // by Forwarding::session_key
  Admission& admission;
  RouteQueue* queue;  // null: the router has no queue
  boost::asio::thread_pool& readers;
};

}  // namespace octavo::fleet
