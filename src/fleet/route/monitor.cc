#include "fleet/route/monitor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/quoted_text.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/observe/model_cards.h"
#include "fleet/relay/refusal.h"
#include "fleet/route/admin.h"

namespace octavo::fleet {
namespace {

constexpr int kTickMs = 100;
constexpr int kModelsMs = 30'000;
constexpr std::int64_t kRefreshUs = 1'000'000;  // minimum time between two refreshes of the models
constexpr int kRefreshWaitMs = 1'000;
constexpr std::size_t kPageBytesMax = 8 << 20;
constexpr std::string_view kEnginePage = "/metrics";
constexpr std::string_view kModelsPage = "/v1/models";
// SGLang's router serves the metrics of all its workers at this path.
constexpr std::string_view kRouterPage = "/engine_metrics";

// Metrics of engines, and of routers that are used as workers. A router reports the requests at its workers
// and in its queue.
const EngineMetrics& worker_metrics() {
  static const EngineMetrics kMetrics = [] {
    EngineMetrics metrics = known_engines().any;
    metrics.push_back({.figure = Figure::running, .metric = {.name = "smg_worker_requests_active"}});
    metrics.push_back({.figure = Figure::waiting, .metric = {.name = "llm_d_epp_flow_control_queue_size"}});
    // names on kRouterPage
    for (const std::string_view name : {"sglang_num_running_reqs", "vllm_num_requests_running"})
      metrics.push_back({.figure = Figure::running, .metric = {.name = std::string(name)}});
    for (const std::string_view name : {"sglang_num_queue_reqs", "vllm_num_requests_waiting"})
      metrics.push_back({.figure = Figure::waiting, .metric = {.name = std::string(name)}});
    return metrics;
  }();
  return kMetrics;
}

std::string failure_of(const Result<http::Response>& answer) {
  return answer ? fmt::format("status {}", answer->status) : answer.error().message;
}

// The reason of a 400 is a mistake in the URL, such as http:// for a port with TLS.
std::string details_of(const Result<http::Response>& answer) {
  constexpr std::size_t kBytesMax = 200;
  if (!answer || answer->status != 400) return "";
  return fmt::format(", {}", quoted_text(answer->body.substr(0, kBytesMax)));
}

}  // namespace

void Monitor::start() {
  loop_.post([this] { tick(); });
}

void Monitor::tick() {
  const std::int64_t now = now_us();
  balancer_.tick();
  const auto view = balancer_.fleet().view();
  const auto leaving = balancer_.leaving();
  std::erase_if(known_, [&](const auto& entry) {
    const bool has_left =
        !view->find(entry.first) && std::ranges::none_of(leaving, [&](const Member& member) {
          return member.endpoint->name == entry.first;
        });
    if (has_left) left_.left(entry.first, now);
    return has_left;
  });
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(cards_, [&](const auto& entry) { return !view->find(entry.first); });
  }
  for (const Member& member : view->members) visit(member, now);
  for (const Member& member : leaving)
    if (!view->find(member.endpoint->name)) visit(member, now);
  // After the visits, which keep the workers that have returned.
  for (const std::string& worker : left_.take_forgotten(now)) forget_(worker);
  loop_.after(kTickMs, [this] { tick(); });
}

void Monitor::visit(const Member& member, std::int64_t now) {
  const auto [found, is_new] = known_.try_emplace(member.endpoint->name);
  if (is_new) left_.returned(member.endpoint->name);
  Known& known = found->second;
  const Availability availability = member.state.availability;
  const bool answers = availability != Availability::unprobed && availability != Availability::starting &&
                       availability != Availability::unhealthy;
  const auto due = [now](std::int64_t& last_us, int interval_ms) {
    if (last_us != 0 && now - last_us < std::int64_t{1000} * interval_ms) return false;
    last_us = now;
    return true;
  };
  if (due(known.probed_us, answers ? options_.health.interval_ms : options_.health.startup_interval_ms))
    probe(member);
  if (!answers) {
    known.models_us = 0;  // the worker may have different models when it is available again
    return;
  }
  if (options_.metrics_interval_ms > 0 && due(known.metrics_us, options_.metrics_interval_ms))
    fetch(member, known.has_no_page ? kRouterPage : kEnginePage,
          [this, member](const Result<http::Response>& answer) {
            note_key(member, kEnginePage, answer);
            const auto polled = known_.find(member.endpoint->name);
            if (answer && answer->status == 404 && polled != known_.end())
              polled->second.has_no_page = !polled->second.has_no_page;
            if (answer && answer->status == 200) read_metrics(member, *answer);
          });
  if (due(known.models_us, kModelsMs)) request_models(member, [] {});
}

// After a failure, repeats the probe at the startup interval, so that a hanging worker is detected in less
// than three normal intervals. The status 503 with kKeepsRequests is not a failure: the worker is a router
// that has no workers at the moment, and keeps requests in its queue. Retry-After alone says nothing,
// because engines send it with each 503.
void Monitor::probe(const Member& member) {
  fetch(member, options_.health.endpoint, [this, member](const Result<http::Response>& answer) {
    const bool ready = answer && answer->status / 100 == 2;
    const bool keeps = answer && answer->status == 503 && answer->headers.find(kKeepsRequests).has_value();
    const auto pause_s = keeps ? retry_after_s(*answer) : std::nullopt;
    const bool well = ready || pause_s;
    if (pause_s) balancer_.pause(*member.endpoint, *pause_s);
    if (const auto known = known_.find(member.endpoint->name); known != known_.end()) {
      note_failure(member, known->second, well ? "" : failure_of(answer), details_of(answer));
      if (!ready)
        known->second.probed_us =
            now_us() - std::int64_t{1000} *
                           std::max(0, options_.health.interval_ms - options_.health.startup_interval_ms);
    }
    balancer_.probed(member.id, *member.endpoint, well);
  });
}

// Logs a reason only when it changes, because some failures persist, such as an untrusted certificate.
void Monitor::note_failure(const Member& member, Known& known, std::string failure,
                           std::string_view details) {
  if (!failure.empty() && failure != known.failure)
    log_warning("{}: the health check failed: {}{}", member.endpoint->label(), failure, details);
  known.failure = std::move(failure);
}

// Logs once for each worker that it refuses the router's key. The health check may succeed nevertheless,
// because /health needs no key. `page` is a constant. Some engines guard only one of the pages.
void Monitor::note_key(const Member& member, std::string_view page, const Result<http::Response>& answer) {
  const auto known = known_.find(member.endpoint->name);
  if (!answer || known == known_.end()) return;
  std::set<std::string_view>& refused = known->second.refused_pages;
  if (answer->status == 200) refused.erase(page);
  if (answer->status != 401 && answer->status != 403) return;
  const bool first = refused.empty();
  refused.insert(page);
  if (!first) return;
  log_warning("{}: GET {} got status {}, so the router cannot read this page of the worker: {}",
              member.endpoint->label(), page, answer->status,
              options_.api_keys.empty()
                  ? "start the router with --api-key KEY, a key of this worker"
                  : "the first --api-key of the router must also be a key of this worker");
}

void Monitor::read_metrics(const Member& polled, const http::Response& answer) {
  const auto read = [&] {
    const auto view = balancer_.view();
    const Member* member = view->find(polled.endpoint->name);
    return read_engine_page(member ? *member : polled, answer.body, worker_metrics(), now_us());
  };
  EnginePage page = read();
  balancer_.set_ranks(polled.id, *polled.endpoint, page.ranks);
  // The first reading is of all ranks at the port. Reads again, now only the metrics of the endpoint's rank.
  if (page.ranks > 1 && !polled.endpoint->shares_port) page = read();
  if (!page.state) return;
  const auto restarted = balancer_.scraped(
      {{.endpoint = polled.id, .name = polled.endpoint->name, .state = std::move(page.state)}});
  if (const auto known = known_.find(polled.endpoint->name); !restarted.empty() && known != known_.end())
    known->second.models_us = 0;
}

// After a failure, reads the models again at the interval of the health checks, because until then the worker
// counts as one that serves no other models than before.
void Monitor::request_models(const Member& member, std::function<void()> then) {
  fetch(member, kModelsPage, [this, member, then = std::move(then)](const Result<http::Response>& answer) {
    note_key(member, kModelsPage, answer);
    if (answer && answer->status == 200) learn_models(member, answer->body);
    const auto known = known_.find(member.endpoint->name);
    const bool failed = !answer || answer->status >= 500;
    if (failed && known != known_.end())
      known->second.models_us = now_us() - std::int64_t{1000} * (kModelsMs - options_.health.interval_ms);
    then();
  });
}

void Monitor::refresh_models(std::function<void()> done) {
  loop_.post([this, done = std::move(done)]() mutable {
    next_refresh_.push_back(std::move(done));
    if (!refresh_runs_ && !refresh_is_due_) begin_refresh();
  });
}

// Waits until a second has passed since the last refresh. A call of refresh_models() during a refresh waits
// for the next one, because an endpoint may have loaded the model after it listed its models.
void Monitor::begin_refresh() {
  refresh_is_due_ = false;
  if (const std::int64_t wait_us = refreshed_us_ + kRefreshUs - now_us(); wait_us > 0) {
    refresh_is_due_ = true;
    return loop_.after(static_cast<int>(wait_us / 1000) + 1, [this] { begin_refresh(); });
  }
  refresh_runs_ = true;
  refreshing_ = std::exchange(next_refresh_, {});
  const auto open = std::make_shared<int>(1);  // stays above 0 until all requests are sent
  const auto answered = [this, open, number = ++refreshes_] {
    if (--*open == 0 && number == refreshes_) end_refresh();
  };
  const auto view = balancer_.fleet().view();
  for (const Member& member : view->members) {
    if (member.state.availability != Availability::available) continue;
    ++*open;
    request_models(member, answered);
  }
  loop_.after(kRefreshWaitMs, [this, number = refreshes_] {
    if (number == refreshes_) end_refresh();
  });
  answered();
}

void Monitor::end_refresh() {
  if (!std::exchange(refresh_runs_, false)) return;
  refreshed_us_ = now_us();
  for (const auto& done : std::exchange(refreshing_, {})) done();
  if (!next_refresh_.empty()) begin_refresh();
}

void Monitor::fetch(const Member& member, std::string_view target,
                    std::function<void(Result<http::Response>)> then) {
  http::CallRequest request{.address = *http::parse_base_url(member.endpoint->url),
                            .target = std::string(target),
                            .timeout_ms = options_.health.timeout_ms};
  if (!options_.api_keys.empty()) request.headers.add("Authorization", "Bearer " + options_.api_keys.front());
  const auto answer = std::make_shared<http::Response>();
  const auto too_long = std::make_shared<bool>(false);
  loop_.call(std::move(request), {.head = [=](http::Response head) { *answer = std::move(head); },
                                  .body =
                                      [=](std::string_view piece) {
                                        *too_long =
                                            *too_long || answer->body.size() + piece.size() > kPageBytesMax;
                                        if (!*too_long) answer->body += piece;
                                      },
                                  .end =
                                      [=](Result<> result) {
                                        if (!result) return then(std::unexpected(result.error()));
                                        if (*too_long)
                                          return then(failure(ErrorCode::io, "the page is too long"));
                                        then(std::move(*answer));
                                      }});
}

void Monitor::learn_models(const Member& polled, const std::string& page) {
  auto found = read_model_cards(page);
  const auto view = balancer_.fleet().view();
  const Member* member = view->find(polled.id);
  if (!found || !member || member->endpoint->name != polled.endpoint->name) return;
  {
    const std::lock_guard lock(mutex_);
    cards_[member->endpoint->name] = std::move(found->cards);
  }
  balancer_.set_models(*member, std::move(found->models), std::move(found->adapters));
}

std::string Monitor::models_json() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> all;
  for (const auto& [endpoint, cards] : cards_)
    for (const auto& [model, card] : cards) {
      // A replica that has not loaded the model yet does not know this number.
      const auto [kept, is_new] = all.try_emplace(model, card);
      if (!is_new && kept->second.contains(R"("max_model_len":null)")) kept->second = card;
    }
  std::string out = R"({"object":"list","data":[)";
  for (const auto& [model, card] : all) {
    if (!out.ends_with('[')) out += ',';
    out += card;
  }
  return out + "]}";
}

}  // namespace octavo::fleet
