// The part of Forwarding for SGLang's KV transfer: each attempt sends the request to a prefill worker and
// to a decode worker at the same time. The decode worker does not compute prompts, so the attempt fails if
// either worker fails.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/relay/bootstrap.h"
#include "fleet/relay/json_body.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/refusal.h"
#include "fleet/route/forwarding.h"

namespace octavo::fleet {

bool Forwarding::is_bootstrapped() const {
  if (!context_.options.pd.enabled || in_.request().method != "POST" || !is_divided(in_.request().path))
    return false;
  const auto view = balancer_.view();
  return std::ranges::any_of(view->members, [](const Member& member) {
    return member.endpoint->role == Role::prefill && member.endpoint->bootstrap_port > 0;
  });
}

// Sends the request, with a new bootstrap_room, to the best prefill worker that has not failed. Returns
// false if no such worker is available.
bool Forwarding::send_prefill_half() {
  if (const AttemptPointer before = std::exchange(prefill_half_, nullptr)) {
    if (!before->failed) std::erase(history_.tried, before->choice.booking.endpoint);
    settle(*before, Outcome::neither);
  }
  const auto source = client_body_ ? client_body_ : in_.body();
  const auto request = json_object(*source);
  if (!request) return false;
  auto choice = choose_prefill();
  if (!choice) return false;
  const Endpoint& worker = *choice->endpoint;
  auto body = bootstrap_body(
      *source, *request, {http::parse_base_url(worker.url)->host, worker.bootstrap_port, balancer_.draw()});
  if (!body) return false;  // begin_halves() has already answered the client
  body_ = std::make_shared<const std::string>(*std::move(body));
  prefill_half_ =
      open(*std::move(choice), body_, std::min(in_.left_ms(), context_.options.pd.prefill_timeout_ms));
  return true;
}

void Forwarding::begin_halves() {
  const auto request = json_object(in_.request().body);
  if (!request) return refuse(400, "the body is not a JSON object, or has too many values");
  if (const auto checked = bootstrap_body(in_.request().body, *request, {}); !checked)
    return answer(proxy_error(in_.request().path, checked.error()));
  in_halves_ = true;
  if (!send()) refuse_for_now(503, "no pair of a prefill and a decode worker is available");
}

void Forwarding::on_prefill_half(Attempt& attempt, const Result<>& result) {
  attempt.reports_cost |= cost_.take_head(attempt.answer);
  http::Response reply = std::move(attempt.answer);
  const bool refused = result && worth_a_retry(reply.status);
  const bool unreachable = !result && result.error().code == ErrorCode::unavailable;
  attempt.failed = !result || reply.status != 200;
  settle(attempt, unreachable ? Outcome::failure : result && !refused ? Outcome::success : Outcome::neither);
  context_.metrics.prefilled(attempt.failed ? "failed" : "handed_over");
  if (!attempt.failed) return;
  const std::string reason =
      fmt::format("{}: {}", attempt.worker().url,
                  result ? fmt::format("status {}", reply.status) : result.error().message);
  log_info("prefill failed at {}", reason);
  if (!result) context_.metrics.worker_failed(attempt.worker().url);
  suspect(attempt, result, reply.status);
  if (!is<Sent>()) return;  // the response has begun, so the decode worker reports the failure
  for (const AttemptPointer& decode : under_way()) {
    std::erase(history_.tried, decode->choice.booking.endpoint);
    settle(*decode, Outcome::neither);
  }
  state_ = Sent{};
  if (!result && in_.left_ms() == 0) return refuse_late();
  if (result && !refused && !back_.begun()) return answer(for_client(attempt, std::move(reply)));
  if (refused && is_backpressure(reply.status))
    if (const auto seconds = retry_after_s(reply)) balancer_.pause(attempt.worker(), *seconds);
  if (refused) history_.refusal = for_client(attempt, std::move(reply));
  // As in on_lost(), the first retry needs no budget, because a worker that crashes loses many requests at
  // once.
  const bool free = !result && (unreachable || ++history_.losses == 1);
  free || context_.retries.take(now_us()) ? retry(reason) : give_up(reason);
}

}  // namespace octavo::fleet
