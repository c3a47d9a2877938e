// The prompt at a prefill worker, before a decode worker answers. Whatever goes wrong with it, the decode
// worker can do all of the work.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/relay/disaggregation.h"
#include "fleet/relay/refusal.h"
#include "fleet/route/forwarding.h"
#include "openai/routes.h"

namespace octavo::fleet {

// False: the request has no prompt to compute apart, or no worker takes it.
bool Forwarding::prefill() {
  const http::Request& request = in_.request();
  const openai::Route* route = openai::find_route(request.path);
  if (request.method != "POST" || !route || !route->renders) return false;
  std::optional<std::string> shortened = prefill_body(request.path, request.body);
  if (!shortened) return false;
  auto choice = balancer_.choose(in_.route(), choice_options(Role::prefill));
  if (!choice) {
    context_.metrics.prefilled(prefill_busy_ ? "busy" : "failed");
    return false;
  }
  state_ = Prefilling{};
  std::get<Prefilling>(state_).attempt =
      open(*std::move(choice), std::make_shared<const std::string>(*std::move(shortened)),
           std::min(in_.left_ms(), context_.options.prefill_timeout_ms));
  return true;
}

void Forwarding::on_prefilled(Attempt& attempt, const Result<>& result) {
  const http::Response reply = std::move(attempt.answer);
  const auto worker = attempt.choice.endpoint;
  const bool refused = result && worth_a_retry(reply.status);
  const bool unreachable = !result && result.error().code == ErrorCode::unavailable;
  constexpr std::int64_t kTimerUs = 2'000;  // calls count what is left of their time in whole milliseconds
  const bool late =
      now_us() - attempt.sent_us + kTimerUs >= std::int64_t{1000} * context_.options.prefill_timeout_ms;
  const bool silent = !result && (attempt.forgotten || late);
  settle(attempt, unreachable || silent ? Outcome::failure
                  : result && !refused  ? Outcome::success
                                        : Outcome::neither);
  if (!result) context_.metrics.worker_failed(worker->url);
  std::optional<std::string> params;
  if (result && reply.status == 200) params = kv_transfer_params(reply.body);
  if (!params)
    log_info("{} has not computed a prompt: {}", worker->url,
             result ? fmt::format("status {}", reply.status) : result.error().message);
  if (refused && is_backpressure(reply.status)) {
    prefill_busy_ = true;
    if (const auto seconds = retry_after_s(reply)) balancer_.pause(*worker, *seconds);
  }
  const bool elsewhere = !result || refused;
  if (elsewhere && static_cast<int>(history_.tried.size()) < context_.options.retry.attempts_max && in_.left_ms() > 0) {
    if (prefill()) return;
  } else {
    context_.metrics.prefilled(params ? "handed_over" : "failed");
  }
  state_ = Sent{};
  history_.tried.clear();
  prefilled_ = params.has_value();
  prefill_busy_ = false;
  if (params)
    body_ =
        std::make_shared<const std::string>(decode_body(body_ ? *body_ : in_.request().body, *params));
  if (!send()) refuse(503, "no replica is available");
}

}  // namespace octavo::fleet
