#include "fleet/extproc/scraper.h"

#include <utility>

#include "base/clock.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/observe/model_cards.h"

namespace octavo::fleet {

Scraper::Scraper(EndpointPicker& picker, http::ClientLoop& loop, PollOptions metrics,
                 std::optional<PollOptions> models)
    : picker_(picker),
      loop_(loop),
      metrics_(picker.fleet(), loop, std::move(metrics),
               [this](const auto&... read) { metrics_read(read...); }) {
  if (models)
    models_.emplace(picker.fleet(), loop, *std::move(models),
                    [this](const auto&... read) { models_read(read...); });
}

void Scraper::start() {
  metrics_.start();
  if (models_) models_->start();
}

// Nothing: the page says nothing of its load, or the endpoint is gone.
std::optional<EndpointState> Scraper::state_in(EndpointId id, const Result<http::Response>& page) const {
  const auto view = picker_.view();
  const Member* member = view->find(id);
  if (!member || !page || page->status != 200) return std::nullopt;
  EndpointState state = member->state;
  if (!read_engine_metrics(page->body, state)) return std::nullopt;
  state.observed_us = now_us();
  return state;
}

void Scraper::metrics_read(const Member& asked, const Result<http::Response>& page) {
  scrapes_.push_back({.endpoint = asked.id, .answered = page.has_value(), .state = state_in(asked.id, page)});
  if (scrapes_.size() > 1) return;
  // Behind the answers that have arrived with this one.
  loop_.post([this] { picker_.scraped(std::exchange(scrapes_, {})); });
}

void Scraper::models_read(const Member& asked, const Result<http::Response>& page) {
  if (!page || page->status != 200) return;  // what it served last
  if (auto found = read_model_cards(page->body))
    picker_.set_adapters(asked.endpoint->name, std::move(found->adapters));
}

}  // namespace octavo::fleet
