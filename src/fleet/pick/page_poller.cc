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
  std::erase_if(polled_, [&](const auto& entry) {
    const Polled& polled = *entry.second;
    const Member* member = view->find(entry.first);
    if (member && member->endpoint == polled.member.endpoint && !polled.outdated) return false;
    if (const auto call = polled.call.lock()) call->cancel();
    return true;
  });
  for (const Member& member : view->members) {
    if (!is_polled(member)) continue;
    const auto found = polled_.find(member.id);
    if (found == polled_.end())
      begin(member);
    else if (const auto call = found->second->call.lock();
             call && !std::exchange(found->second->running, true))
      call->again();
  }
  loop_.after(options_.interval_ms, [this] { tick(); });
}

void PagePoller::begin(const Member& member) {
  Polled& polled =
      *polled_.emplace(member.id, std::make_unique<Polled>(Polled{.member = member})).first->second;
  http::Address address = *http::parse_base_url(member.endpoint->url);
  if (options_.port > 0) address.port = static_cast<std::uint16_t>(options_.port);
  if (options_.at_node) address.host = member.endpoint->node;
  if (options_.tls) address.tls = true;
  const bool whole = !options_.part || whole_.contains(member.id);
  polled.call = loop_.call({.address = std::move(address),
                            .target = whole ? options_.path : options_.path + options_.part(*member.endpoint),
                            .connect_ms = options_.timeout_ms,
                            .timeout_ms = options_.timeout_ms,
                            .repeats = true,
                            .tls = options_.tls},
                           {.head =
                                [this, &polled](http::Response head) {
                                  polled.page = std::move(head);
                                  polled.page.body = take_body();
                                },
                            .body =
                                [&polled](std::string_view piece) {
                                  std::string& body = polled.page.body;
                                  if (body.size() + piece.size() <= kPageBytesMax) body += piece;
                                },
                            .end = [this, &polled](const Result<>& result) { end(polled, result); }});
}

void PagePoller::end(Polled& polled, const Result<>& result) {
  polled.running = false;
  if (!result) return then_(polled.member, std::unexpected(result.error()));
  Result<http::Response> response = std::move(polled.page);
  then_(polled.member, response);
  return_body(std::move(response->body));
}

bool PagePoller::read_whole(EndpointId endpoint) {
  if (!options_.part || !whole_.insert(endpoint).second) return false;
  if (const auto found = polled_.find(endpoint); found != polled_.end()) found->second->outdated = true;
  return true;
}

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
