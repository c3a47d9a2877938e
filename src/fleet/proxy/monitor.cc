#include "fleet/proxy/monitor.h"

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/observe/model_cards.h"

namespace octavo::fleet {
namespace {

constexpr int kTickMs = 100;
constexpr std::int64_t kModelsUs = 30'000'000;
constexpr std::size_t kPageBytesMax = 8 << 20;

}  // namespace

void Monitor::start() {
  loop_.post([this] { tick(); });
}

void Monitor::tick() {
  const RouterOptions& options = dispatcher_.options();
  const std::int64_t now = now_us();
  dispatcher_.tick();
  const auto view = dispatcher_.fleet().view();
  const auto name_gone = [&](const auto& entry) { return !view->find(entry.first); };
  std::erase_if(times_, name_gone);
  {
    const std::lock_guard lock(mutex_);
    std::erase_if(cards_, name_gone);
  }
  for (const Member& member : view->members) {
    Times& times = times_[member.endpoint->name];
    const EndpointId id = member.id;
    const Availability availability = member.state.availability;
    const bool answers = availability != Availability::starting && availability != Availability::unhealthy;
    if (now >= times.probe_us) {
      times.probe_us = now + std::int64_t{1000} * (answers ? options.health_check_interval_ms
                                                           : options.startup_check_interval_ms);
      ask(member, options.health_check_endpoint, [this, id](const Result<http::Response>& answer) {
        dispatcher_.probed(id, answer && answer->status / 100 == 2);
      });
    }
    if (!answers) {
      times.models_us = 0;  // it may come back with others
      continue;
    }
    if (now >= times.metrics_us && options.metrics_interval_ms > 0) {
      times.metrics_us = now + std::int64_t{1000} * options.metrics_interval_ms;
      ask(member, "/metrics", [this, id, rank = member.endpoint->rank](const Result<http::Response>& answer) {
        if (!answer || answer->status != 200) return;
        const int ranks = engines_of(answer->body);
        if (rank == 0) dispatcher_.set_ranks(id, ranks);
        dispatcher_.observed(id, [&](EndpointState& state) {
          return read_engine_metrics(answer->body, state, known_engines().any,
                                     ranks > 1 ? std::optional(rank) : std::nullopt);
        });
      });
    }
    if (now >= times.models_us) {
      times.models_us = now + kModelsUs;
      ask(member, "/v1/models", [this, id](const Result<http::Response>& answer) {
        if (answer && answer->status == 200) learn_models(id, answer->body);
      });
    }
  }
  loop_.after(kTickMs, [this] { tick(); });
}

void Monitor::ask(const Member& member, std::string_view target,
                  std::function<void(Result<http::Response>)> then) {
  http::CallRequest request{.address = *http::parse_base_url(member.endpoint->url),
                            .target = std::string(target),
                            .timeout_ms = dispatcher_.options().health_check_timeout_ms};
  if (!dispatcher_.options().api_keys.empty())
    request.headers.add("Authorization", "Bearer " + dispatcher_.options().api_keys.front());
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
                                        if (*too_long) return then(failure(ErrorCode::io, "a page too long"));
                                        then(std::move(*answer));
                                      }});
}

void Monitor::learn_models(EndpointId id, const std::string& page) {
  auto found = read_model_cards(page);
  const auto view = dispatcher_.fleet().view();
  const Member* member = view->find(id);
  if (!found || !member) return;
  Endpoint endpoint = *member->endpoint;
  endpoint.models = std::move(found->models);
  endpoint.adapters = std::move(found->adapters);
  {
    const std::lock_guard lock(mutex_);
    cards_[endpoint.name] = std::move(found->cards);
  }
  if (endpoint.models != member->endpoint->models || endpoint.adapters != member->endpoint->adapters)
    dispatcher_.fleet().describe(id, std::move(endpoint));
}

std::string Monitor::models_json() const {
  const std::lock_guard lock(mutex_);
  std::map<std::string, std::string> all;
  for (const auto& [endpoint, cards] : cards_) all.insert(cards.begin(), cards.end());
  std::string out = R"({"object":"list","data":[)";
  for (const auto& [model, card] : all) {
    if (!out.ends_with('[')) out += ',';
    out += card;
  }
  return out + "]}";
}

}  // namespace octavo::fleet
