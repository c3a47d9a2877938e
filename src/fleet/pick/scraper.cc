#include "fleet/pick/scraper.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/decide/attribute.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/observe/gpu_metrics.h"
#include "fleet/observe/model_cards.h"

namespace octavo::fleet {
namespace {

constexpr int kGatherMs = 8;

// Returns whether another endpoint has the same IP address and a different port. Then each rank has a
// separate port, and is already a separate endpoint.
bool has_port_of_own(const FleetView& view, const Member& member) {
  return std::ranges::any_of(view.members, [&](const Member& other) {
    return other.endpoint->url != member.endpoint->url &&
           ip_of(other.endpoint->name) == ip_of(member.endpoint->name);
  });
}

// Returns "" for statuses that a server may return for a short time.
std::string_view advice_on(int status) {
  switch (status) {
    case 400:
      return "if the endpoint uses TLS, set scheme: https in the parameters of metrics-data-source";
    case 401:
    case 403:
      return "the picker has no key for endpoints: start the endpoint without --api-key, and let the gateway "
             "check keys";
    case 404:
      return "set the path of the metrics in the parameters of metrics-data-source";
    default:
      return "";
  }
}

}  // namespace

Scraper::Scraper(Balancer& balancer, http::ClientLoop& loop, Pages pages)
    : balancer_(balancer), loop_(loop), engines_(std::move(pages.engines)) {
  if (pages.metrics) {
    // If the configured path has a query, the query is kept, because the user has written it.
    if (!pages.metrics->path.contains('?'))
      pages.metrics->part = [this](const Endpoint& endpoint) { return metrics_query(endpoint); };
    metrics_.emplace(balancer.fleet(), loop, *std::move(pages.metrics),
                     [this](const auto&... read) { metrics_read(read...); });
  }
  if (pages.models)
    models_.emplace(balancer.fleet(), loop, *std::move(pages.models),
                    [this](const auto&... read) { models_read(read...); });
  if (pages.gpus)
    gpus_.emplace(balancer.fleet(), loop, *std::move(pages.gpus),
                  [this](const auto&... read) { gpus_read(read...); });
}

void Scraper::start() {
  if (metrics_) metrics_->start();
  if (models_) models_->start();
  if (gpus_) gpus_->start();
}

// Returns a query with the names of the needed metrics. Prometheus' Python client, which vLLM uses, then
// writes only these: 1 KB instead of 20 KB. Other servers ignore the query.
const std::string& Scraper::metrics_query(const Endpoint& endpoint) {
  const EngineMetrics& metrics = engines_.of(endpoint);
  const auto [query, is_new] = queries_.try_emplace(&metrics);
  if (is_new)
    for (const std::string& name : metric_names(metrics))
      query->second += fmt::format("{}name%5B%5D={}", query->second.empty() ? '?' : '&', name);
  return query->second;
}

// Logs once for each reason why an endpoint's metrics cannot be read. An available endpoint may miss single
// reads, and a starting server answers 503, so other failures count only while the endpoint is not available.
void Scraper::note_failure(const Member& polled, const Result<http::Response>& page) {
  const std::string& name = polled.endpoint->name;
  if (page && page->status == 200) return void(failures_.erase(name));
  const auto view = balancer_.view();
  std::string reason;
  if (page) {
    const std::string_view advice = advice_on(page->status);
    if (advice.empty()) return;
    reason = fmt::format("status {}: {}", page->status, advice);
  } else {
    const Member* member = view->find(polled.id);
    const auto now = member ? member->state.availability : Availability::unprobed;
    if (now != Availability::starting && now != Availability::unhealthy) return;
    reason = fmt::format("{}: check the address, and the scheme of metrics-data-source (https for TLS)",
                         page.error().message);
  }
  if (std::exchange(failures_[name], reason) == reason) return;
  std::erase_if(failures_, [&](const auto& failure) { return !view->find(failure.first); });
  log_warning("{}: the metrics cannot be read, so the load is unknown: {}", polled.endpoint->label(), reason);
}

void Scraper::metrics_read(const Member& polled, const Result<http::Response>& page) {
  note_failure(polled, page);
  Scrape scrape{.endpoint = polled.id, .name = polled.endpoint->name, .answered = page.has_value()};
  const auto view = balancer_.view();
  const Member* member = view->find(polled.id);
  if (member && page && page->status == 200) {
    EnginePage read = read_engine_page(*member, page->body, engines_.of(*member->endpoint), now_us());
    if ((read.ranks > 1 || member->endpoint->shares_port) && !has_port_of_own(*view, *member)) {
      balancer_.set_ranks(polled.id, *polled.endpoint, read.ranks);
      const auto now = balancer_.view();
      const Member* first = member->endpoint->shares_port ? nullptr : now->find(polled.id);
      if (first)  // reads only the metrics of the member's rank
        read = read_engine_page(*first, page->body, engines_.of(*first->endpoint), now_us());
    }
    scrape.state = std::move(read.state);
  }
  // Prometheus' Python client in multiprocess mode finds no metric by its name, so the whole page is read.
  if (page && !scrape.state && metrics_->read_whole(polled.id)) return;
  hand_over(std::move(scrape));
}

// If the page is missing, the last values stay, because the engine may work although the exporter fails.
void Scraper::gpus_read(const Member& polled, const Result<http::Response>& page) {
  if (!page || page->status != 200) return;
  if (const auto busy = read_gpu_utilization(page->body, polled.endpoint->pod))
    hand_over({.endpoint = polled.id,
               .attributes = {{{std::string(kGpuUtilization), std::string(kGpuMetrics)}, *busy}}});
}

// Collects the readings of a short time and applies them together, because each change publishes a new view
// of all endpoints.
void Scraper::hand_over(Scrape scrape) {
  scrapes_.push_back(std::move(scrape));
  if (scrapes_.size() == 1)
    loop_.after(kGatherMs, [this] { balancer_.scraped(std::exchange(scrapes_, {})); });
}

void Scraper::models_read(const Member& polled, const Result<http::Response>& page) {
  if (!page || page->status != 200) return;  // the known models stay
  if (auto found = read_model_cards(page->body))
    balancer_.set_models(polled, std::nullopt, std::move(found->adapters));
}

}  // namespace octavo::fleet
