#include "fleet/route/fan_out.h"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <utility>
#include <vector>

#include "fleet/decide/eligible.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/relay.h"
#include "fleet/view/fleet_view.h"
#include "openai/errors.h"
#include "openai/ollama_names.h"
#include "serve/ollama/keep_alive.h"

namespace octavo::fleet {
namespace {

namespace json = boost::json;

// Paths of vLLM and SGLang. All requests use POST.
constexpr std::array<std::string_view, 50> kPaths{
    "/abort_request",
    "/abort_requests",
    "/clear_hicache_storage_backend",
    "/collective_rpc",
    "/configure_logging",
    "/continue_generation",
    "/destroy_weights_update_group",
    "/dump_expert_distribution_record",
    "/finish_weight_update",
    "/flush_cache",
    "/freeze_gc",
    "/hicache/storage-backend",
    "/hicache/storage-backend/clear",
    "/inference/v1/abort_requests",
    "/init_weight_transfer_engine",
    "/init_weights_send_group_for_remote_instance",
    "/init_weights_update_group",
    "/load_lora_adapter",
    "/load_lora_adapter_from_tensors",
    "/pause",
    "/pause_generation",
    "/release_memory_occupation",
    "/reset_encoder_cache",
    "/reset_mm_cache",
    "/reset_prefix_cache",
    "/resume",
    "/resume_memory_occupation",
    "/scale_elastic_ep",
    "/send_weights_to_remote_instance",
    "/set_internal_state",
    "/set_trace_level",
    "/shutdown_weight_transfer_engine",
    "/sleep",
    "/slow_down",
    "/start_expert_distribution_record",
    "/start_profile",
    "/start_weight_update",
    "/stop_expert_distribution_record",
    "/stop_profile",
    "/unload_lora_adapter",
    "/update_weight_version",
    "/update_weights",
    "/update_weights_from_disk",
    "/update_weights_from_distributed",
    "/update_weights_from_ipc",
    "/update_weights_from_tensor",
    "/v1/load_lora_adapter",
    "/v1/unload_lora_adapter",
    "/wake_up",
    "/weights_checker",
};

std::string_view without_last_slashes(std::string_view path) {
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

// Returns NAME of a path /models/NAME/load or /models/NAME/unload; "" for other paths.
std::string_view changed_model(std::string_view path) {
  constexpr std::string_view kModels = "/models/";
  if (!path.starts_with(kModels)) return "";
  path.remove_prefix(kModels.size());
  for (const std::string_view verb : {"/load", "/unload"})
    if (path.ends_with(verb)) return path.substr(0, path.size() - verb.size());
  return "";
}

// Returns the model that an Ollama request without a prompt loads or unloads; "" for other requests.
std::string held_model(const http::Request& request) {
  constexpr std::size_t kBytesMax = 16 << 10;  // longer bodies have a prompt
  const std::string_view path = without_last_slashes(request.path);
  if (request.method != "POST" || !path.starts_with("/api/") || request.body.size() > kBytesMax) return "";
  boost::system::error_code failed;
  const json::value body = json::parse(request.body, failed);
  if (failed || !body.is_object() || !ollama::hold_of(path, body.get_object())) return "";
  const json::value* model = body.get_object().if_contains("model");
  return model && model->is_string() ? std::string(model->get_string()) : "";
}

// Returns the response with the highest status, because Ollama's clients expect a response of one server.
http::Response worst_answer(std::span<const WorkerAnswer> answers) {
  return std::ranges::max_element(answers, {},
                                  [](const WorkerAnswer& answer) { return answer.response.status; })
      ->response;
}

// Returns the highest status and the responses of all workers.
http::Response all_answers(std::span<const WorkerAnswer> answers) {
  json::array workers;
  for (const WorkerAnswer& answer : answers)
    workers.push_back(
        {{"url", answer.url}, {"status", answer.response.status}, {"body", answer.response.body}});
  const int worst = worst_answer(answers).status;
  const bool well = worst / 100 == 2;
  const std::string message = well ? fmt::format("all {} workers returned success", answers.size())
                                   : "some workers returned an error: see `workers`";
  return {.status = worst,
          .body = json::serialize(
              json::object{{"success", well}, {"message", message}, {"workers", std::move(workers)}})};
}

constexpr int kLookMs = 500;  // interval of health checks of workers that have not responded

// Must be used on its loop's thread.
struct FanOut : std::enable_shared_from_this<FanOut> {
  struct Part {
    std::shared_ptr<const Endpoint> worker;
    http::Response answer = {};
    std::weak_ptr<http::Call> call = {};
    bool ended = false;
  };

  FanOut(const RouteContext& c, http::ClientLoop& l, std::shared_ptr<http::Exchange> e, FanOutPlan p,
         std::function<void()> d)
      : context(c), loop(l), exchange(std::move(e)), plan(std::move(p)), done(std::move(d)) {}
  const RouteContext context;
  http::ClientLoop& loop;
  std::shared_ptr<http::Exchange> exchange;
  const FanOutPlan plan;
  std::function<void()> done;
  std::vector<Part> parts = {};
  std::size_t open = 0;

  void add_parts(const FleetView& view, std::string_view model);
  void ended(Part& part, const Result<>& result);
  void look();
  void finish();
};

// The ranks of a data-parallel server are members with the same URL. The server gets the request once, and
// applies it to all its ranks.
void FanOut::add_parts(const FleetView& view, std::string_view model) {
  for (const Member& member : view.members)
    if (serves(*member.endpoint, model) && std::ranges::none_of(parts, [&](const Part& part) {
          return part.worker->url == member.endpoint->url;
        }))
      parts.push_back({member.endpoint});
}

void FanOut::ended(Part& part, const Result<>& result) {
  if (!result) part.answer = openai::error_response(502, result.error().message);
  part.ended = true;
  if (--open == 0) finish();
}

void FanOut::look() {
  const auto view = context.balancer.view();
  for (Part& part : parts) {
    const Member* member = view->find(part.worker->name);
    const Availability state = member ? member->state.availability : Availability::available;
    if (part.ended || (state != Availability::unhealthy && state != Availability::starting)) continue;
    if (const auto call = part.call.lock()) call->cancel();
    ended(part, failure(ErrorCode::unavailable, "{} failed its health checks", part.worker->url));
  }
  if (open > 0) loop.after(kLookMs, [self = shared_from_this()] { self->look(); });
}

void FanOut::finish() {
  std::vector<WorkerAnswer> answers;
  for (Part& part : parts) answers.push_back({part.worker->url, std::move(part.answer)});
  http::Response answer = plan.merge(answers);
  const bool well = answer.status / 100 == 2;
  const std::string_view path = without_last_slashes(exchange->request().path);
  if (well && empties_caches(path)) context.balancer.caches_reset();
  if (path.ends_with("lora_adapter") || !plan.model.empty()) context.monitor.refresh_models([] {});
  exchange->respond(std::move(answer));
  done();
}

}  // namespace

bool means_all_workers(const http::Request& request) {
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const std::string_view path = without_last_slashes(request.path);
  const bool acts = !reads || path == "/flush_cache";
  return acts && (std::ranges::find(kPaths, path) != kPaths.end() || !changed_model(path).empty());
}

std::optional<FanOutPlan> fan_out_plan(const http::Request& request) {
  if (means_all_workers(request))
    return FanOutPlan{.model = std::string(changed_model(without_last_slashes(request.path))),
                      .merge = all_answers};
  std::string model = held_model(request);
  if (model.empty()) return std::nullopt;
  return FanOutPlan{.model = std::move(model), .merge = worst_answer};
}

bool empties_caches(std::string_view path) {
  return path.contains("cache") || path.starts_with("/update_weights_from_") ||
         path == "/finish_weight_update" || path == "/collective_rpc" || path == "/sleep" ||
         path == "/release_memory_occupation";
}

void fan_out(const RouteContext& context, http::ClientLoop& loop, std::shared_ptr<http::Exchange> exchange,
             http::Headers headers, FanOutPlan plan, std::function<void()> done) {
  const auto view = context.balancer.view();
  const auto all =
      std::make_shared<FanOut>(context, loop, std::move(exchange), std::move(plan), std::move(done));
  if (view->members.empty()) {
    all->exchange->respond(
        openai::error_response(503, "the router has no workers: add one with POST /workers"));
    return all->done();
  }
  const http::Request& request = all->exchange->request();
  const std::string& model = all->plan.model;
  all->add_parts(*view, model);
  if (all->parts.empty()) all->add_parts(*view, openai::without_latest(model));
  if (all->parts.empty()) {
    all->exchange->respond(
        proxy_error(request.path, 404, fmt::format("The model `{}` does not exist.", model), "model"));
    return all->done();
  }
  all->open = all->parts.size();
  for (FanOut::Part& part : all->parts)
    part.call = loop.call({.address = *http::parse_base_url(part.worker->url),
                           .method = request.method,
                           .target = target_of(request),
                           .headers = headers,
                           .body = std::shared_ptr<const std::string>(all->exchange, &request.body),
                           .timeout_ms = context.options.request_timeout_ms},
                          {.head = [all, &part](http::Response head) { part.answer = std::move(head); },
                           .body =
                               [all, &part](std::string_view piece) {
                                 constexpr std::size_t kMost = 1 << 20;
                                 std::string& body = part.answer.body;
                                 body += piece.substr(0, kMost - std::min(kMost, body.size()));
                               },
                           .end = [all, &part](const Result<>& result) { all->ended(part, result); }});
  loop.after(kLookMs, [all] { all->look(); });
}

}  // namespace octavo::fleet
