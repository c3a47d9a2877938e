// The part of Forwarding that sends the prompt to a prefill worker, and then the request to a decode
// worker. If no prefill worker computes the prompt, the decode worker computes it, unless --enforce-disagg
// is set.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/relay/cached_usage.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/relay/refusal.h"
#include "fleet/route/forwarding.h"
#include "openai/routes.h"

namespace octavo::fleet {

// Returns null if the request has no prompt, or if the decode worker has cached most of the prompt.
std::shared_ptr<const std::string> Forwarding::prefill_request() {
  const http::Request& request = in_.request();
  if (!context_.options.pd.enabled || request.method != "POST") return nullptr;
  // a decode worker stores the response that the request continues
  if (!in_.route().stored_id.empty()) return nullptr;
  std::optional<std::string> body = prefill_body(request.path, request.body);
  if (!body) return nullptr;
  if (const int own_max = context_.options.pd.max_local_length; own_max > 0) {
    draw_ = balancer_.draw();  // stored, so that the same decode worker is chosen again
    const auto rest = balancer_.new_tokens(in_.route(), choice_options(Role::decode));
    if (rest && *rest <= own_max) {
      context_.metrics.prefilled("local");
      return nullptr;
    }
  }
  return std::make_shared<const std::string>(*std::move(body));
}

void Forwarding::prefill(std::shared_ptr<const std::string> body) {
  auto choice = choose_prefill();
  if (!choice) return spill("no other prefill worker is available");
  state_ = Prefilling{.body = body, .attempt = nullptr};
  std::get<Prefilling>(state_).attempt = open(
      *std::move(choice), std::move(body), std::min(in_.left_ms(), context_.options.pd.prefill_timeout_ms));
}

void Forwarding::on_prefilled(Attempt& attempt, const Result<>& result) {
  attempt.reports_cost |= cost_.take_head(attempt.answer);
  http::Response reply = std::move(attempt.answer);
  const auto worker = attempt.choice.endpoint;
  const bool refused = result && worth_a_retry(reply.status);
  const bool unreachable = !result && result.error().code == ErrorCode::unavailable;
  // the remaining time of calls is rounded to milliseconds, so times this close to the deadline count as late
  constexpr std::int64_t kTimerUs = 2'000;
  const bool late =
      now_us() - attempt.sent_us + kTimerUs >= std::int64_t{1000} * context_.options.pd.prefill_timeout_ms;
  const bool silent = !result && (attempt.forgotten || late);
  settle(attempt, unreachable || silent ? Outcome::failure
                  : result && !refused  ? Outcome::success
                                        : Outcome::neither);
  if (!result) context_.metrics.worker_failed(worker->url);
  std::optional<std::string> params;
  if (result && reply.status == 200) params = kv_transfer_params(reply.body);
  if (params) {
    context_.metrics.prefilled("handed_over");
    return decode(params, cached_tokens(reply.body));
  }
  const std::string reason = fmt::format(
      "{}: {}", worker->url, result ? fmt::format("status {}", reply.status) : result.error().message);
  log_info("prefill failed at {}", reason);
  if (!silent) suspect(attempt, result, reply.status);
  if (refused && is_backpressure(reply.status)) {
    history_.prefill_is_busy = true;
    if (const auto seconds = retry_after_s(reply)) balancer_.pause(*worker, *seconds);
  }
  const bool elsewhere = !result || refused;
  if (context_.options.pd.enforced && result && reply.status != 200)
    history_.refusal = for_client(attempt, std::move(reply));
  if (elsewhere && static_cast<int>(history_.tried.size()) < context_.options.retry.attempts_max &&
      in_.left_ms() > 0)
    return prefill(std::get<Prefilling>(state_).body);
  spill(reason);
}

// Notes a prefill worker that has received the request and failed. If the request succeeds elsewhere, the
// failure counts against this worker.
void Forwarding::suspect(const Attempt& attempt, const Result<>& result, int status) {
  const bool failed = result ? worth_a_retry(status) && !is_backpressure(status)
                             : result.error().code != ErrorCode::unavailable;
  if (failed) history_.suspects.push_back(attempt.choice.endpoint);
}

// Continues without a prefill worker, or refuses the request with --enforce-disagg.
void Forwarding::spill(const std::string& reason) {
  if (!context_.options.pd.enforced) {
    context_.metrics.prefilled(history_.prefill_is_busy ? "busy" : "failed");
    return decode({});
  }
  context_.metrics.prefilled("refused");
  if (history_.refusal) return answer(*std::move(history_.refusal));
  refuse(503, "no prefill worker could compute the prompt, and --enforce-disagg is set: " + reason);
}

// Sends the request to a decode worker. `params` are the kv_transfer_params of the prompt's blocks, of
// which the prefill worker had cached `cached` tokens. If `params` is nullopt, the decode worker computes
// the prompt.
void Forwarding::decode(const std::optional<std::string>& params, std::int64_t cached) {
  state_ = Sent{};
  history_.tried.clear();
  history_.prefill_is_busy = false;
  history_.refusal.reset();  // the refusal came from a prefill worker
  prefill_cached_ = params ? std::optional(cached) : std::nullopt;
  if (params)
    body_ = std::make_shared<const std::string>(decode_body(body_ ? *body_ : in_.request().body, *params));
  if (!send()) no_worker();
}

}  // namespace octavo::fleet
