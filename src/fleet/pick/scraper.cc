#include "fleet/pick/scraper.h"

#include <utility>

#include "base/clock.h"
#include "fleet/decide/attribute.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/observe/gpu_metrics.h"
#include "fleet/observe/model_cards.h"

namespace octavo::fleet {

Scraper::Scraper(Balancer& balancer, http::ClientLoop& loop, Pages pages)
    : balancer_(balancer),
      loop_(loop),
      engines_(std::move(pages.engines)),
      metrics_(balancer.fleet(), loop, std::move(pages.metrics),
               [this](const auto&... read) { metrics_read(read...); }) {
  if (pages.models)
    models_.emplace(balancer.fleet(), loop, *std::move(pages.models),
                    [this](const auto&... read) { models_read(read...); });
  if (pages.gpus)
    gpus_.emplace(balancer.fleet(), loop, *std::move(pages.gpus),
                  [this](const auto&... read) { gpus_read(read...); });
}

void Scraper::start() {
  metrics_.start();
  if (models_) models_->start();
  if (gpus_) gpus_->start();
}

// nullopt: the page has no load, or the endpoint has left.
std::optional<EndpointState> Scraper::state_in(EndpointId id, const Result<http::Response>& page) const {
  const auto view = balancer_.view();
  const Member* member = view->find(id);
  if (!member || !page || page->status != 200) return std::nullopt;
  EndpointState state = member->state;
  state.attributes.reset();  // those that this page has
  if (!read_engine_metrics(page->body, state, engines_.of(*member->endpoint))) return std::nullopt;
  state.observed_us = now_us();
  return state;
}

void Scraper::metrics_read(const Member& asked, const Result<http::Response>& page) {
  hand_over({.endpoint = asked.id, .answered = page.has_value(), .state = state_in(asked.id, page)});
}

// A missing page leaves the last reading: exporters do not show whether engines answer.
void Scraper::gpus_read(const Member& asked, const Result<http::Response>& page) {
  if (!page || page->status != 200) return;
  if (const auto busy = read_gpu_utilization(page->body, asked.endpoint->pod))
    hand_over({.endpoint = asked.id,
               .attributes = {{{std::string(kGpuUtilization), std::string(kGpuMetrics)}, *busy}}});
}

void Scraper::hand_over(Scrape scrape) {
  scrapes_.push_back(std::move(scrape));
  if (scrapes_.size() > 1) return;
  // Behind the answers that have arrived with this one.
  loop_.post([this] { balancer_.scraped(std::exchange(scrapes_, {})); });
}

void Scraper::models_read(const Member& asked, const Result<http::Response>& page) {
  if (!page || page->status != 200) return;  // what it served last
  if (auto found = read_model_cards(page->body))
    balancer_.set_models(asked, std::nullopt, std::move(found->adapters));
}

}  // namespace octavo::fleet
