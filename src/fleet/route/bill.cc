#include "fleet/route/bill.h"

#include <array>
#include <utility>

namespace octavo::fleet {
namespace {

// The engine ends a cancelled request in its next step. A step takes milliseconds, or seconds if it computes
// a long prompt.
constexpr std::array kReadAfterMs{20, 100, 500, 2'500};

}  // namespace

void Bill::read_cost(http::CallRequest request) {
  ++unread_;
  read_later(std::make_shared<Reading>(Reading{.request = std::move(request)}));
}

void Bill::read_later(const std::shared_ptr<Reading>& reading) {
  if (reading->tries == kReadAfterMs.size()) {
    --unread_;
    return charge_if_complete();
  }
  loop_.after(kReadAfterMs[reading->tries++], [self = shared_from_this(), reading] { self->send(reading); });
}

void Bill::send(const std::shared_ptr<Reading>& reading) {
  loop_.call(reading->request, {.head = [reading](http::Response head) { reading->head = std::move(head); },
                                .body = [](std::string_view) {},
                                .end = [self = shared_from_this(), reading](
                                           const Result<>& result) { self->on_reply(reading, result); }});
}

void Bill::on_reply(const std::shared_ptr<Reading>& reading, const Result<>& result) {
  const auto text = reading->head.headers.find(kCostHeader);
  const auto cost = result && text ? parse_cost_text(*text) : std::nullopt;
  if (result && reading->head.status == 200 && !cost) return read_later(reading);
  if (cost) {
    read_ += *cost;
    has_read_ = true;
  }
  --unread_;
  charge_if_complete();
}

void Bill::close(Ended ended) {
  ended_ = std::move(ended);
  charge_if_complete();
}

void Bill::charge_if_complete() {
  if (!ended_ || unread_ > 0) return;
  const Ended ended = *std::exchange(ended_, std::nullopt);
  if (!ended.reported && !has_read_) return;
  AnswerCost cost = ended.cost;
  cost += read_;
  metrics_.accounts.charge(ended.tenant, cost, 1);
  metrics_.accounts.log({.id = ended.id,
                         .tenant = ended.tenant,
                         .path = ended.path,
                         .model = ended.model,
                         .status = ended.status,
                         .seconds = ended.seconds,
                         .cost = cost});
}

}  // namespace octavo::fleet
