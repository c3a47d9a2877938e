// Forwarding's answers to its client.
#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "fleet/relay/relay.h"
#include "fleet/route/forwarding.h"
#include "openai/errors.h"

namespace octavo::fleet {
namespace {

constexpr int kOwnDeadlineGraceMs = 2'000;  // the worker itself says that the client's deadline has passed

}  // namespace

http::Response Forwarding::for_client(const Attempt& attempt, http::Response answer) const {
  http::Response out{.status = answer.status,
                     .content_type = std::move(answer.content_type),
                     .body = std::move(answer.body)};
  const bool own_cors = context_.options.http.cors.has_value();
  for (const auto& [name, value] : passed_on(answer.headers))
    if (!own_cors || !name.starts_with("Access-Control-")) out.headers.add(name, value);
  if (explain_) out.headers.add("X-Octavo-Explain", attempt.choice.explanation);
  return out;
}

void Forwarding::start_stream(Attempt& attempt) {
  http::Response head = for_client(attempt, std::exchange(attempt.answer, {}));
  attempt.answer.status = head.status;
  blame_suspects(head.status);
  event_stream_ = is_event_stream(head);
  phase_ = Phase::streaming;
  const std::string begun = std::exchange(head.body, {});
  context_.stored.learn(response_of(begun), attempt.choice.endpoint->name);
  exchange_->start_stream(std::move(head));
  if (!begun.empty()) send_back(attempt, begun);
}

void Forwarding::send_back(Attempt& attempt, std::string_view piece) {
  balancer_.grow(attempt.choice.booking, 1);
  if (!event_stream_ || !resumable_) return void(exchange_->write(piece));
  if (const std::string events = resumable_->push(piece); !events.empty()) exchange_->write(events);
  if (resumable_->failed()) on_lost(attempt, {ErrorCode::io, "it says so", ""});
}

// "": the request is none that stores a response.
std::string_view Forwarding::response_of(std::string_view answer) const {
  const http::Request& request = exchange_->request();
  return request.method == "POST" && request.path == "/v1/responses" ? response_id(answer)
                                                                     : std::string_view();
}

void Forwarding::answer(http::Response response) {
  context_.metrics.answered(response.status, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  phase_ = Phase::over;
  exchange_->respond(std::move(response));
}

// Tells the client that there is no answer, or no more of it. The exchange of a stream is dropped unfinished,
// so that the client does not take the stream for complete.
void Forwarding::refuse(int status, const std::string& message, std::string_view param) {
  if (phase_ != Phase::streaming) return answer(openai::error_response(status, message, param));
  context_.metrics.answered(status, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  if (event_stream_) {
    context_.metrics.migrated(false);
    exchange_->write("data: " + openai::error_json(status, message, param) + "\n\n");
  }
  phase_ = Phase::over;
}

void Forwarding::break_off() {
  if (past_own_deadline()) return refuse_late();
  refuse(502, "the replica failed in the middle of its answer, and no other one can continue it");
}

void Forwarding::refuse_late() {
  drop_attempts(Outcome::neither);
  if (!past_own_deadline()) return refuse(504, "the request took longer than --request-timeout-secs");
  refuse(503, fmt::format("timeout: its {} s are over", request_.timeout_s), "timeout");
}

void Forwarding::finish() {
  drop_attempts(Outcome::success);
  context_.metrics.answered(200, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  phase_ = Phase::over;
  exchange_->finish();
}

void Forwarding::client_gone() {
  if (phase_ == Phase::over) return;
  phase_ = Phase::over;
  if (queued_ != 0) context_.queue->cancel(queued_);
  drop_attempts(Outcome::neither);
  context_.metrics.answered(499, static_cast<double>(now_us() - arrived_us_) * 1e-6);
}

bool Forwarding::past_own_deadline() const {
  return request_.timeout_s > 0 && static_cast<double>(now_us() - arrived_us_) * 1e-6 >= request_.timeout_s;
}

// Milliseconds left of the router's limit for the request, or of the client's own.
int Forwarding::left_ms() const {
  double limit_ms = context_.options.request_timeout_ms;
  if (request_.timeout_s > 0) limit_ms = std::min(limit_ms, request_.timeout_s * 1e3 + kOwnDeadlineGraceMs);
  const double passed_ms = static_cast<double>(now_us() - arrived_us_) * 1e-3;
  return static_cast<int>(std::max(limit_ms - passed_ms, 0.0));
}

}  // namespace octavo::fleet
