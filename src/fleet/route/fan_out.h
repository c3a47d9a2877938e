// Sends a request to all workers, and returns one response. Used for requests that change engines, such as
// clearing caches, loading adapters, weights or models, and pausing.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "fleet/route/route_context.h"
#include "http/async_client.h"
#include "http/exchange.h"

namespace octavo::fleet {

bool means_all_workers(const http::Request& request);

// Returns whether workers may have emptied their KV caches after a successful request to `path`, which must
// not end with a slash. Requests that only prepare a change of weights leave the caches as they are.
bool empties_caches(std::string_view path);

struct WorkerAnswer {
  std::string url = {};
  http::Response response = {};
};

// Makes one response from the responses of all workers.
using MergeAnswers = std::function<http::Response(std::span<const WorkerAnswer>)>;

struct FanOutPlan {
  std::string model = {};  // only replicas that serve this model get the request; "": all
  MergeAnswers merge;
};

// Returns the plan of a request that changes engines, or of an Ollama request that only loads or unloads a
// model. Returns nullopt if one worker must get the request.
std::optional<FanOutPlan> fan_out_plan(const http::Request& request);

// Sends one request with `headers` to each URL. Must be called on the loop's thread. Calls `done` once, when
// all workers have responded.
void fan_out(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             http::Headers headers, FanOutPlan plan, std::function<void()> done);

}  // namespace octavo::fleet
