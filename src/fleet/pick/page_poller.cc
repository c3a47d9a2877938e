#include "fleet/pick/page_poller.h"

#include <memory>
#include <utility>

namespace octavo::fleet {
namespace {

constexpr std::size_t kPageBytesMax = 8 << 20;
constexpr std::size_t kBodiesMax = 16, kBodyKeptMax = 1 << 20;

}  // namespace

void PagePoller::start() {
  loop_.post([this] { tick(); });
}

void PagePoller::tick() {
  const auto view = fleet_.view();
  std::erase_if(whole_, [&](EndpointId id) { return view->find(id) == nullptr; });
  for (const Member& member : view->members)
    if ((!options_.at_node || !member.endpoint->node.empty()) && polled_.insert(member.id).second)
      fetch(member);
  loop_.after(options_.interval_ms, [this] { tick(); });
}

void PagePoller::fetch(const Member& member) {
  const auto page = std::make_shared<http::Response>();
  std::string body = take_body();
  http::Address address = *http::parse_base_url(member.endpoint->url);
  if (options_.port > 0) address.port = static_cast<std::uint16_t>(options_.port);
  if (options_.at_node) address.host = member.endpoint->node;
  if (options_.tls) address.tls = true;
  const bool whole = !options_.part || whole_.contains(member.id);
  loop_.call({.address = std::move(address),
              .target = whole ? options_.path : options_.path + options_.part(*member.endpoint),
              .connect_ms = options_.timeout_ms,
              .timeout_ms = options_.timeout_ms,
              .tls = options_.tls},
             {.head =
                  [page, body = std::move(body)](http::Response head) mutable {
                    *page = std::move(head);
                    page->body = std::move(body);
                  },
              .body =
                  [page](std::string_view piece) {
                    if (page->body.size() + piece.size() <= kPageBytesMax) page->body += piece;
                  },
              .end =
                  [this, page, member](const Result<>& result) {
                    polled_.erase(member.id);
                    if (!result) return then_(member, std::unexpected(result.error()));
                    Result<http::Response> response = std::move(*page);
                    then_(member, response);
                    return_body(std::move(response->body));
                  }});
}

bool PagePoller::read_whole(EndpointId endpoint) { return options_.part && whole_.insert(endpoint).second; }

std::string PagePoller::take_body() {
  if (bodies_.empty()) return {};
  std::string body = std::move(bodies_.back());
  bodies_.pop_back();
  return body;
}

void PagePoller::return_body(std::string body) {
  body.clear();
  if (bodies_.size() < kBodiesMax && body.capacity() <= kBodyKeptMax) bodies_.push_back(std::move(body));
}

}  // namespace octavo::fleet
