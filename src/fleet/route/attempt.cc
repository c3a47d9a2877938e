#include "fleet/route/attempt.h"

#include <algorithm>

#include "base/clock.h"

namespace octavo::fleet {

Attempt::Attempt(Balancer& balancer, Choice chosen)
    : choice(std::move(chosen)), sent_us(now_us()), balancer_(balancer) {}

std::shared_ptr<Attempt> Attempt::open(const RouteContext& context, http::ClientLoop& loop, Choice choice,
                                       http::CallRequest request, Events events, int blind_wait_ms) {
  Balancer& balancer = context.balancer;
  context.metrics.selected(choice.endpoint->label());
  const auto attempt = std::make_shared<Attempt>(balancer, std::move(choice));
  attempt->call_ = loop.call(
      std::move(request),
      {.head = [attempt](http::Response head) { attempt->answer = std::move(head); },
       .body = [attempt, body = std::move(events.body)](std::string_view piece) { body(*attempt, piece); },
       .end = [attempt, end = std::move(events.end)](const Result<>& result) { end(*attempt, result); },
       .ready = std::move(events.ready)});
  const auto trouble = [weak = std::weak_ptr(attempt), notify = std::move(events.trouble)](Trouble which) {
    if (const auto it = weak.lock(); it && !it->settled_) notify(*it, which);
  };
  balancer.watch(
      attempt->choice.booking,
      [&loop, trouble](Trouble which) { loop.post([trouble, which] { trouble(which); }); },
      std::int64_t{1'000} * blind_wait_ms);
  return attempt;
}

void Attempt::settle(Outcome outcome) {
  if (std::exchange(settled_, true)) return;
  if (const auto call = call_.lock()) call->cancel();
  balancer_.ended(choice.booking, outcome);
}

void Attempt::gather(std::string_view piece, std::size_t bytes_max) {
  answer.body += piece.substr(0, bytes_max - std::min(bytes_max, answer.body.size()));
}

}  // namespace octavo::fleet
