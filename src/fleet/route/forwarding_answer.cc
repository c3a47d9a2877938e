// The part of Forwarding that writes the response to the client.
#include <fmt/format.h>

#include <utility>

#include "fleet/relay/cached_usage.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/relay.h"
#include "fleet/route/forwarding.h"
#include "openai/routes.h"

namespace octavo::fleet {

http::Response Forwarding::for_client(const Attempt& attempt, http::Response answer) const {
  http::Response out{.status = answer.status,
                     .content_type = std::move(answer.content_type),
                     .body = std::move(answer.body)};
  const bool own_cors = context_.options.http.cors.has_value();
  for (const auto& [name, value] : passed_back(answer.headers, attempt.worker().url))
    if (!own_cors || !name.starts_with("Access-Control-")) out.headers.add(name, value);
  if (prefill_cached_ && out.status == 200 && !is_stream(out))
    out.body = with_cached_tokens(out.body, *prefill_cached_);
  if (cost_.wanted() && cost_.reported() && !is_stream(out))
    out.headers.set(std::string(kCostHeader), cost_text(cost_.sum()));
  if (in_.explains()) out.headers.add("X-Octavo-Explain", attempt.choice.explanation);
  return out;
}

// Stores the usage. Each event of a stream may contain the usage so far.
void Forwarding::note_usage(Attempt& attempt, std::string_view bytes) const {
  if (!in_.knows_length()) return;
  if (const auto usage = read_usage(bytes)) attempt.usage = usage;
}

// Compares the reported usage with the router's number of tokens and predicted cached tokens.
void Forwarding::check_usage(const Attempt& attempt) const {
  const auto& usage = attempt.usage;
  if (!usage) return;
  const std::size_t tokens = in_.route().tokens.size();
  const bool same = context_.tokens ? context_.tokens->compare(tokens, usage->prompt_tokens)
                                    : static_cast<std::int64_t>(tokens) == usage->prompt_tokens;
  context_.metrics.prompt_reported(static_cast<std::int64_t>(tokens) - attempt.choice.new_tokens,
                                   usage->cached_tokens, same);
}

void Forwarding::start_stream(Attempt& attempt) {
  context_.metrics.first_byte(attempt.first_byte_s);
  attempt.reports_cost |= cost_.take_head(attempt.answer);
  http::Response head = for_client(attempt, std::exchange(attempt.answer, {}));
  attempt.answer.status = head.status;
  blame_suspects(head.status);
  const std::string begun = std::exchange(head.body, {});
  context_.stored.learn(created(begun), attempt.choice.endpoint);
  back_.begin(std::move(head));
  if (!begun.empty()) send_back(attempt, begun);
}

void Forwarding::send_back(Attempt& attempt, std::string_view piece) {
  balancer_.grow(attempt.choice.booking, 1);
  note_usage(attempt, piece);
  if (back_.is_events()) piece = cost_.take_piece(piece);
  std::string events;
  if (back_.is_events() && prefill_cached_) {
    for (const std::string& event : attempt.events.push(piece))
      events += with_cached_tokens(event, *prefill_cached_);
    piece = events;
  }
  if (!back_.write(piece)) on_lost(attempt, {ErrorCode::io, "it says so", ""});
}

// Returns the id of the response or conversation that the request created. Returns "" if it created none.
std::string_view Forwarding::created(std::string_view answer) const {
  const http::Request& request = in_.request();
  const openai::Route* known = openai::find_route(request.path);
  if (request.method != "POST" || !known || known->creates.empty()) return {};
  return created_id(answer, known->creates);
}

void Forwarding::answer(http::Response response) {
  end(response.status);
  back_.respond(std::move(response));
}

// Reports to the client that the request has failed. A stream that has begun ends without its regular last
// event, so that the client notices that the stream is incomplete.
void Forwarding::refuse(int status, const std::string& message, std::string_view param) {
  const std::string& path = in_.request().path;
  if (!back_.begun()) return answer(proxy_error(path, status, message, param));
  if (back_.is_events()) back_.write_own(proxy_error_event(path, status, message, param));
  end(status);
}

// Refuses a request that may succeed if the client repeats it after a second. Must be called before the
// response begins.
void Forwarding::refuse_for_now(int status, const std::string& message) {
  constexpr std::string_view kRetryAfterS = "1";
  http::Response response = proxy_error(in_.request().path, status, message);
  response.headers.set("Retry-After", std::string(kRetryAfterS));
  answer(std::move(response));
}

void Forwarding::break_off() {
  if (in_.past_own_deadline()) return refuse_late();
  if (context_.options.retry.migration_limit > 0) context_.metrics.migrated(false);
  refuse(502,
         "the replica failed in the middle of its answer, and no other replica can continue the answer: send "
         "the request again");
}

void Forwarding::refuse_late() {
  if (!in_.past_own_deadline()) return refuse(504, "the request took longer than --request-timeout-secs");
  refuse(503, fmt::format("timeout: the time limit of {} s is over", in_.route().timeout_s), "timeout");
}

void Forwarding::finish() {
  const bool reported = cost_.end_stream().reported;
  // the attempt is under way if its stream broke after the last event
  for (const AttemptPointer& attempt : under_way()) {
    attempt->reports_cost |= reported;
    read_unread_cost(*attempt, false);
  }
  if (back_.is_events() && cost_.reported()) back_.write_own(cost_.comment());
  drop_attempts(Outcome::success);
  end(200);
  back_.finish();
}

void Forwarding::client_disconnected() {
  if (is<Over>()) return;
  leave();
  end(499);
  if (const auto cancel = std::exchange(cancel_move_, {})) cancel();
}

void Forwarding::end(int status) {
  drop_attempts(Outcome::neither);
  if (prefill_half_) settle(*prefill_half_, Outcome::neither);
  context_.metrics.answered(status, in_.seconds());
  bill_->close({.id = std::string(in_.id()),
                .tenant = in_.account(),
                .path = in_.request().path,
                .model = in_.route().model,
                .status = status,
                .seconds = in_.seconds(),
                .cost = cost_.sum(),
                .reported = cost_.reported()});
  trace_.end(status, in_.route().model);
  state_ = Over{};
}

// Reads the cost of the attempt from its worker, if the response has not reported it. This happens if the
// response was cancelled or broke, or is a stream without comments. All other complete responses report their
// whole cost.
void Forwarding::read_unread_cost(Attempt& attempt, bool complete) {
  if (in_.request().method != "POST" || (complete && (!back_.begun() || back_.is_events()))) return;
  if (attempt.answer.status != 0 && attempt.answer.status / 100 != 2) return;
  if (!std::exchange(attempt.reports_cost, true))
    bill_->read_cost(in_.cost_request(attempt.worker(), attempt.cost_id));
}

}  // namespace octavo::fleet
