#include "fleet/route/admin.h"

#include <algorithm>
#include <atomic>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/value_from.hpp>
#include <charconv>

#include "base/exact_json.h"
#include "base/quoted_text.h"
#include "fleet/balance/index_metrics.h"
#include "fleet/discover/worker_record.h"
#include "fleet/observe/cache_subscriber.h"
#include "fleet/observe/metrics_text.h"
#include "http/target.h"
#include "openai/errors.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;
using http::Request;
using http::Response;

bool available(const Member& member) { return member.state.availability == Availability::available; }

Response json_response(const json::value& body, int status = 200) {
  return {.status = status, .body = exact_json_text(body)};
}

std::string_view worker_type(Role role) {
  switch (role) {
    case Role::both:
      return "regular";
    case Role::prefill:
      return "prefill";
    case Role::decode:
      return "decode";
  }
  return "";
}

json::object describe(const Balancer& balancer, const Member& member) {
  const Endpoint& endpoint = *member.endpoint;
  return {{"id", std::to_string(member.id)},
          {"url", endpoint.url},
          {"rank", endpoint.rank},
          {"model_id", endpoint.models.empty() ? "unknown" : endpoint.models.front()},
          {"models", json::value_from(endpoint.models)},
          {"adapters", json::value_from(endpoint.adapters)},
          {"worker_type", worker_type(endpoint.role)},
          {"connection_mode", "http"},
          {"is_healthy", available(member)},
          {"load", balancer.load(member.id).requests},
          {"waiting", member.state.waiting},
          {"running", member.state.running},
          {"kv_usage", member.state.kv_usage},
          {"kv_events", endpoint.kv_events_endpoint},
          {"block_size", member.state.block_size}};
}

Response list_workers(Balancer& balancer) {
  const auto view = balancer.fleet().view();
  json::array workers;
  for (const Member& member : view->members) workers.push_back(describe(balancer, member));
  const auto count = [&](Role role) {
    return std::ranges::count_if(view->members, [&](const Member& m) { return m.endpoint->role == role; });
  };
  return json_response({{"workers", std::move(workers)},
                        {"total", view->members.size()},
                        {"stats",
                         {{"prefill_count", count(Role::prefill)},
                          {"decode_count", count(Role::decode)},
                          {"regular_count", count(Role::both)}}}});
}

// Reads the worker's role from `worker_type` or, with disaggregated prefill, from `role`.
Result<> take_worker_type(const json::object& body, bool disaggregated, Endpoint& worker) {
  const json::value* type = body.if_contains("worker_type");
  if (type != nullptr) {
    const std::string_view wanted = type->is_string() ? std::string_view(type->get_string()) : "";
    if (!disaggregated && wanted != "regular") return invalid("worker_type", "must be \"regular\"");
    // "regular": the worker has both roles, as if the field were missing
    if (disaggregated && wanted == "regular") return {};
    if (disaggregated && wanted != "prefill" && wanted != "decode")
      return invalid("worker_type", "must be \"prefill\" or \"decode\"");
    worker.role = wanted == "prefill" ? Role::prefill : Role::decode;
  }
  if (!disaggregated) worker.role = Role::both;
  return {};
}

Response add_worker(const RouteContext& context, const json::value& body) {
  if (!body.is_object()) return openai::error_response(400, "must be a JSON object", "");
  auto worker = read_worker(body.get_object());
  if (!worker) return openai::error_response(worker.error());
  if (const auto taken = take_worker_type(body.get_object(), context.options.pd.enabled, *worker); !taken)
    return openai::error_response(taken.error());
  for (const std::string& events : {worker->kv_events_endpoint, worker->kv_replay_endpoint})
    if (!events.empty())
      if (const auto checked = check_zmq_endpoint(events, "kv_events"); !checked)
        return openai::error_response(checked.error());
  const std::string url = worker->url;
  const auto id = context.balancer.put(*std::move(worker));
  if (!id) return openai::error_response(id.error());
  return json_response({{"worker_id", std::to_string(*id)}, {"url", url}, {"status", "accepted"}}, 202);
}

Response one_worker(Balancer& balancer, const Request& request, std::string_view name) {
  const auto view = balancer.fleet().view();
  EndpointId id = kNoEndpoint;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
  const Member* member = error == std::errc() && end == name.data() + name.size() ? view->find(id) : nullptr;
  if (!member)
    return openai::error_response(404, fmt::format("the worker {} does not exist", quoted_text(name)));
  if (request.method == "GET") return json_response(describe(balancer, *member));
  if (request.method != "DELETE") {
    Response refusal = openai::error_response(405, fmt::format("{} is not allowed for {}: use GET or DELETE",
                                                               request.method, quoted_text(request.path)));
    refusal.headers.add("Allow", "GET, DELETE");
    return refusal;
  }
  balancer.remove(id);
  return json_response({{"worker_id", name}, {"status", "removed"}}, 202);
}

// Old routes of SGLang's router, replaced by /workers. The query contains the worker's URL.
std::optional<Response> older_route(const RouteContext& context, const Request& request) {
  const std::string& path = request.path;
  if (path == "/list_workers" && request.method == "GET") return list_workers(context.balancer);
  if ((path != "/add_worker" && path != "/remove_worker") || request.method != "POST") return std::nullopt;
  const auto url = http::query_value(request.query, "url");
  if (!url) return openai::error_response(invalid("url", "must name a worker, as http://host:port").error());
  if (path == "/add_worker") return add_worker(context, json::object{{"url", *url}});
  const auto endpoint = endpoint_of_url(*url);
  if (!endpoint) return openai::error_response(endpoint.error());
  const auto view = context.balancer.view();
  const Member* member = view->find(endpoint->name);
  if (!member)
    return openai::error_response(404, fmt::format("the worker {} does not exist", quoted_text(*url)), "url");
  context.balancer.remove(member->id);
  return json_response({{"worker_id", std::to_string(member->id)}, {"status", "removed"}}, 202);
}

Response metrics(const RouteContext& context) {
  Balancer& balancer = context.balancer;
  std::string out = context.metrics.text();
  write_index_metrics(out, balancer);
  const auto view = balancer.fleet().view();
  const auto gauge = [&](std::string_view name, std::string_view help, auto value) {
    fmt::format_to(std::back_inserter(out), "# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
    for (const Member& m : view->members)
      fmt::format_to(std::back_inserter(out), "{}{{worker=\"{}\"}} {}\n", name,
                     escaped_label(m.endpoint->label()), value(m));
  };
  gauge("smg_worker_requests_active", "Requests in flight at the worker.",
        [&](const Member& m) { return balancer.load(m.id).requests; });
  gauge("octavo_route_worker_peer_requests", "Requests that other routers have in flight at the worker.",
        [&](const Member& m) { return balancer.load_of_peers(m.id).requests; });
  gauge("smg_worker_health", "1 if the router sends requests to the worker, 0 otherwise.",
        [](const Member& m) { return available(m) ? 1 : 0; });
  gauge("smg_worker_cb_state", "State of the worker's circuit breaker: 0 closed, 1 open, 2 half open.",
        [&](const Member& m) { return static_cast<int>(balancer.breaker(m.id)); });
  gauge("octavo_route_worker_waiting", "Requests that wait at the worker, from its metrics.",
        [](const Member& m) { return m.state.waiting; });
  gauge("octavo_route_worker_kv_usage", "Fraction of the worker's KV cache in use.",
        [](const Member& m) { return m.state.kv_usage; });
  fmt::format_to(std::back_inserter(out),
                 "# HELP smg_worker_pool_size Number of workers.\n# TYPE smg_worker_pool_size "
                 "gauge\nsmg_worker_pool_size {}\n",
                 view->members.size());
  return {.content_type = std::string(kMetricsContentType), .body = std::move(out)};
}

// The router is healthy if its workers can answer a request. A prefill worker alone cannot, and with
// --enforce-disagg the other workers cannot without one. If all circuit breakers are open, the router still
// sends requests. For /readiness, a router with a queue is always ready: a fleet may be scaled to zero, and
// the waiting request makes an autoscaler start a worker.
Response health(const RouteContext& context, bool readiness) {
  const auto view = context.balancer.fleet().view();
  const auto healthy = std::ranges::count_if(view->members, available);
  const auto has_worker = [&](bool prefills) {
    return std::ranges::any_of(view->members, [&](const Member& member) {
      return (member.endpoint->role == Role::prefill) == prefills &&
             (available(member) || member.state.availability == Availability::broken);
    });
  };
  const bool answers = has_worker(false) && (!context.options.pd.enforced || has_worker(true));
  const bool ready = answers || (readiness && context.queue);
  Response response = json_response({{"status", ready ? "ready" : "not ready"},
                                     {"healthy_workers", healthy},
                                     {"total_workers", view->members.size()}},
                                    ready ? 200 : 503);
  // A router in front of this router then treats this router as busy, not as unhealthy.
  if (!ready && context.queue) {
    response.headers.set("Retry-After", "1");
    response.headers.set(std::string(kKeepsRequests), "1");
  }
  return response;
}

// vllm-router's route: the policy no longer counts the session at its worker.
Response finish_session(Balancer& balancer, const Request& request) {
  const auto session = http::query_value(request.query, "session_id");
  if (!session || session->empty())
    return openai::error_response(
        invalid("session_id", "must be in the query: /finish_session?session_id=ID").error());
  balancer.finished(*session);
  return json_response({{"session_id", *session}, {"status", "finished"}});
}

// Returns the index of KV blocks for a new router. Handles one request at a time, because the response is
// built in memory.
Response kv_index(Balancer& balancer, const Request& request) {
  static std::atomic_flag busy;
  const auto worker = http::query_value(request.query, "worker");
  if (!worker) return openai::error_response(invalid("worker", "must name a worker, as host:port").error());
  if (busy.test_and_set())
    return openai::error_response(429, "another request is reading an index: retry later");
  const auto dump = balancer.held(*worker);
  Response response =
      dump ? Response{.content_type = "application/octet-stream", .body = write_held_dump(*dump)}
           : openai::error_response(404, "the router has no index of this worker's KV cache", "worker");
  busy.clear();
  return response;
}

Response loads(Balancer& balancer) {
  json::array workers;
  const auto view = balancer.fleet().view();
  for (const Member& member : view->members)
    workers.push_back({{"worker", member.endpoint->label()}, {"load", balancer.load(member.id).requests}});
  return json_response({{"workers", std::move(workers)}});
}

}  // namespace

Result<Endpoint> endpoint_of_url(std::string_view url) {
  TRY(const http::Address address, http::parse_base_url(url));
  return Endpoint{.name = address.text(), .url = address.url()};
}

Result<> read_kv_events(std::string_view text, std::string_view field, Endpoint& endpoint) {
  if (text == "none") return {};
  const std::size_t comma = std::min(text.find(','), text.size());
  endpoint.kv_events_endpoint = text.substr(0, comma);
  TRY_VOID(check_zmq_endpoint(endpoint.kv_events_endpoint, field));
  if (comma == text.size()) return {};
  endpoint.kv_replay_endpoint = text.substr(comma + 1);
  return check_zmq_endpoint(endpoint.kv_replay_endpoint, field);
}

std::optional<Response> admin_answer(const RouteContext& context, const Request& request) {
  constexpr std::string_view kWorkers = "/workers";
  const std::string& path = request.path;
  if (path == kWorkers && request.method == "POST") {
    boost::system::error_code error;
    return add_worker(context, json::parse(request.body, error));
  }
  if (path == "/finish_session" && request.method == "POST") return finish_session(context.balancer, request);
  if (auto answer = older_route(context, request)) return answer;
  if (path.starts_with("/workers/"))
    return one_worker(context.balancer, request, std::string_view(path).substr(kWorkers.size() + 1));
  if (request.method != "GET" && request.method != "HEAD") return std::nullopt;
  if (path == kWorkers) return list_workers(context.balancer);
  if (path == "/liveness") return Response{.body = "{}"};
  if (path == "/health" || path == "/readiness") return health(context, path == "/readiness");
  if (path == "/metrics") return metrics(context);
  if (path == "/get_loads" || path == "/v1/loads") return loads(context.balancer);
  if (path == "/kv_index") return kv_index(context.balancer, request);
  if (path == "/v1/models") return Response{.body = context.monitor.models_json()};
  return std::nullopt;
}

}  // namespace octavo::fleet
