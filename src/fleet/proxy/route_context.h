// What all requests of a router share.
#pragma once

#include "fleet/proxy/dispatcher.h"
#include "fleet/proxy/monitor.h"
#include "fleet/proxy/prompt_tokens.h"
#include "fleet/proxy/retry_budget.h"
#include "fleet/proxy/stored_responses.h"

namespace octavo::fleet {

struct RouteContext {
  Dispatcher& dispatcher;
  Monitor& monitor;
  const PromptTokens* tokens;  // null: prompts stay text
  RetryBudget& retries;
  StoredResponses& stored;
};

}  // namespace octavo::fleet
