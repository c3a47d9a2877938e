#include "fleet/extproc/scraper.h"

#include <memory>
#include <utility>

#include "base/clock.h"
#include "fleet/observe/engine_metrics.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kPageBytesMax = 8 << 20;

}  // namespace

void Scraper::start() {
  loop_.post([this] { tick(); });
}

void Scraper::tick() {
  for (const Member& member : picker_.view()->members)
    if (asked_.insert(member.id).second) ask(member);
  loop_.after(options_.interval_ms, [this] { tick(); });
}

void Scraper::ask(const Member& member) {
  const auto page = std::make_shared<http::Response>();
  loop_.call({.address = *http::parse_base_url(member.endpoint->url),
              .target = options_.path,
              .connect_ms = options_.timeout_ms,
              .timeout_ms = options_.timeout_ms},
             {.head = [page](http::Response head) { *page = std::move(head); },
              .body =
                  [page](std::string_view piece) {
                    if (page->body.size() + piece.size() <= kPageBytesMax) page->body += piece;
                  },
              .end =
                  [this, page, id = member.id](const Result<>& result) {
                    asked_.erase(id);
                    result ? answered(id, *page) : report({.endpoint = id, .answered = false});
                  }});
}

void Scraper::answered(EndpointId id, const http::Response& page) {
  EndpointPicker::Scrape scrape{.endpoint = id, .answered = true};
  const auto view = picker_.view();
  if (const Member* member = view->find(id); member && page.status == 200) {
    EndpointState state = member->state;
    if (read_engine_metrics(page.body, state)) {
      state.observed_us = now_us();
      scrape.state = std::move(state);
    }
  }
  report(std::move(scrape));
}

void Scraper::report(EndpointPicker::Scrape scrape) {
  scrapes_.push_back(std::move(scrape));
  if (scrapes_.size() > 1) return;
  // Behind the answers that have arrived with this one.
  loop_.post([this] { picker_.scraped(std::exchange(scrapes_, {})); });
}

}  // namespace octavo::fleet
