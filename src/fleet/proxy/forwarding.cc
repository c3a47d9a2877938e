#include "fleet/proxy/forwarding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/proxy/disaggregation.h"
#include "fleet/proxy/relay.h"
#include "fleet/scan/request_scan.h"
#include "http/target.h"
#include "serve/openai/errors.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kRankHeader = "X-data-parallel-rank";  // vLLM's

bool worth_a_retry(int status) {
  constexpr std::array<int, 6> kStatuses{408, 429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

}  // namespace

void Forwarding::start(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange, TenantShare share) {
  std::make_shared<Forwarding>(dispatcher, tokens, loop, std::move(exchange), std::move(share))->begin();
}

Forwarding::Forwarding(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange, TenantShare share)
    : dispatcher_(dispatcher),
      tokens_(tokens),
      loop_(loop),
      exchange_(std::move(exchange)),
      share_(std::move(share)),
      arrived_us_(now_us()) {}

Forwarding::~Forwarding() {
  end_attempt(Outcome::neither);
  hedge_ends(Outcome::neither);
  dispatcher_.leave();
}

// Tenants' keys are the router's business: replicas see the router's own, if it has one.
void Forwarding::show_own_key() {
  http::Headers headers;
  for (const auto& [name, value] : headers_)
    if (!http::equal_ignoring_case(name, "Authorization")) headers.add(name, value);
  if (const auto& keys = dispatcher_.options().api_keys; !keys.empty())
    headers.add("Authorization", "Bearer " + keys.front());
  headers_ = std::move(headers);
}

void Forwarding::begin() {
  const http::Request& request = exchange_->request();
  request_ = scan_request(request);
  if (tokens_) tokens_->write(request, request_);
  explain_ = request.headers.find("X-Octavo-Explain").has_value();
  headers_ = passed_on(request.headers);
  if (!dispatcher_.options().tenants.empty()) show_own_key();
  if (!request.headers.find("X-Request-Id"))
    headers_.add("X-Request-Id", fmt::format("{:016x}", dispatcher_.draw()));
  if (!dispatcher_.knows(request_.model))
    return answer(
        openai::error_response(404, fmt::format("The model `{}` does not exist.", request_.model), "model"));
  if (dispatcher_.options().migration_limit > 0 && request_.stream)
    resumable_ = ResumableStream::of(request.path, request.body);
  if (resumable_) body_ = std::make_shared<const std::string>(resumable_->body());
  const std::weak_ptr<Forwarding> weak = weak_from_this();
  exchange_->on_close([&loop = loop_, weak](http::CloseReason) {
    loop.post([weak] {
      if (const auto self = weak.lock()) self->client_gone();
    });
  });
  if (!prefill()) attempt();
}

// The first of two legs: a replica computes the prompt and keeps its KV blocks. False: there is no such leg.
// Whatever goes wrong with it, the replica that decodes can do all of the work.
bool Forwarding::prefill() {
  if (!dispatcher_.options().disaggregated) return false;
  const http::Request& request = exchange_->request();
  std::optional<std::string> shortened = prefill_body(request.path, request.body);
  if (request.method != "POST" || !request.path.ends_with("/completions") || !shortened) return false;
  choice_ = dispatcher_.choose(request_, Role::prefill, {}, false);
  if (!choice_.endpoint) {
    dispatcher_.metrics().prefilled(false);
    return false;
  }
  const auto self = shared_from_this();
  call_ =
      loop_.call(call_request(*choice_.endpoint, std::make_shared<const std::string>(*std::move(shortened))),
                 {.head = [self](http::Response head) { self->response_ = std::move(head); },
                  .body =
                      [self](std::string_view piece) {
                        if (self->response_.body.size() < kGatheredBytesMax) self->response_.body += piece;
                      },
                  .end = [self](const Result<>& result) { self->on_prefilled(result); }});
  return true;
}

void Forwarding::on_prefilled(const Result<>& result) {
  const http::Response reply = std::exchange(response_, {});
  end_attempt(!result || reply.status >= 500 ? Outcome::failure : Outcome::success);
  std::optional<std::string> params;
  if (result && reply.status == 200) params = kv_transfer_params(reply.body);
  dispatcher_.metrics().prefilled(params.has_value());
  if (params)
    body_ =
        std::make_shared<const std::string>(decode_body(body_ ? *body_ : exchange_->request().body, *params));
  attempt();
}

void Forwarding::attempt() {
  const std::int64_t begun = now_us();
  const Role part = dispatcher_.options().disaggregated ? Role::decode : Role::both;
  choice_ = dispatcher_.choose(request_, part, tried_, explain_);
  if (!choice_.endpoint && !tried_.empty()) {  // all have been tried: once more from the beginning
    tried_.clear();
    choice_ = dispatcher_.choose(request_, part, tried_, explain_);
  }
  dispatcher_.metrics().decided(static_cast<double>(now_us() - begun) * 1e-6);
  if (!choice_.endpoint) return refuse(503, "no replica is available");
  tried_.push_back(choice_.booking.endpoint);
  ++attempts_;
  leg_ = ++legs_;
  headed_ = false;
  call_ = send(leg_, *choice_.endpoint);
  if (const int ms = dispatcher_.options().hedge_after_ms; ms > 0 && !streaming_)
    loop_.after(ms, [weak = weak_from_this(), number = leg_] {
      if (const auto self = weak.lock(); self && self->leg_ == number) self->hedge();
    });
}

// Events of a leg count while it is the one; a hedge's head makes it the one.
std::weak_ptr<http::Call> Forwarding::send(int number, const Endpoint& endpoint) {
  const auto self = shared_from_this();
  return loop_.call(
      call_request(endpoint, body()),
      {.head =
           [self, number](http::Response head) {
             number == self->leg_ ? self->on_head(std::move(head)) : self->hedge_answers(std::move(head));
           },
       .body = [self](std::string_view piece) { self->on_body(piece); },
       .end =
           [self, number](Result<> result) {
             number == self->leg_ ? self->on_end(std::move(result)) : self->hedge_ends(Outcome::failure);
           },
       .ready = [self] { return self->exchange_->unsent_bytes() < kUnsentBytesMax; }});
}

// Nothing has come for so long that another replica is asked, too: the first that answers counts.
void Forwarding::hedge() {
  if (over_ || headed_ || !choice_.endpoint) return;
  const Role part = dispatcher_.options().disaggregated ? Role::decode : Role::both;
  Choice choice = dispatcher_.choose(request_, part, tried_, explain_);
  if (!choice.endpoint) return;
  tried_.push_back(choice.booking.endpoint);
  hedge_ = {.number = ++legs_, .choice = std::move(choice)};
  hedge_.call = send(hedge_.number, *hedge_.choice.endpoint);
}

void Forwarding::hedge_answers(http::Response head) {
  if (worth_a_retry(head.status)) return hedge_ends(head.status >= 500 ? Outcome::failure : Outcome::neither);
  if (const auto call = call_.lock()) call->cancel();
  end_attempt(Outcome::neither);
  hedge_wins();
  on_head(std::move(head));
}

// It goes on in the place of the first one, which has ended.
void Forwarding::hedge_wins() {
  dispatcher_.metrics().hedged(true);
  leg_ = hedge_.number;
  choice_ = std::move(hedge_.choice);
  call_ = hedge_.call;
  hedge_ = {};
}

void Forwarding::hedge_ends(Outcome outcome) {
  if (hedge_.number == 0) return;
  dispatcher_.metrics().hedged(false);
  if (const auto call = hedge_.call.lock()) call->cancel();
  if (outcome == Outcome::failure) dispatcher_.metrics().worker_failed(hedge_.choice.endpoint->label());
  dispatcher_.ended(hedge_.choice.booking, outcome);
  hedge_ = {};
}

http::CallRequest Forwarding::call_request(const Endpoint& endpoint,
                                           std::shared_ptr<const std::string> body) const {
  const http::Request& request = exchange_->request();
  http::CallRequest call{.address = *http::parse_base_url(endpoint.url),
                         .method = request.method,
                         .target = http::percent_encoded(request.path),
                         .headers = headers_,
                         .body = std::move(body),
                         .timeout_ms = dispatcher_.options().request_timeout_ms};
  if (!request.query.empty()) call.target += "?" + request.query;
  if (endpoint.shares_port && !call.headers.find(kRankHeader))
    call.headers.add(std::string(kRankHeader), std::to_string(endpoint.rank));
  return call;
}

// The exchange keeps its body while a call runs; a call's events keep this object, and this the exchange.
std::shared_ptr<const std::string> Forwarding::body() const {
  if (body_) return body_;
  const http::Request& request = exchange_->request();
  if (request.body.empty() && request.method != "POST") return nullptr;
  return {exchange_, &request.body};
}

void Forwarding::on_head(http::Response head) {
  if (worth_a_retry(head.status) && attempts_ < dispatcher_.options().retry.attempts_max) {
    if (const auto call = call_.lock()) call->cancel();
    end_attempt(head.status >= 500 ? Outcome::failure : Outcome::neither);
    if (hedge_.number != 0) return hedge_wins();
    return retry(fmt::format("status {}", head.status));
  }
  headed_ = true;
  hedge_ends(Outcome::neither);
  if (streaming_) {  // the client has the first one's
    const bool goes_on =
        head.status == 200 && (!resumable_->begun() || head.headers.find("X-Octavo-Resumed"));
    if (goes_on) return dispatcher_.metrics().migrated(true);
    if (const auto call = call_.lock()) call->cancel();
    end_attempt(Outcome::neither);
    if (migrate()) return;  // to one that may know how to
    return refuse(502, "the replica failed in the middle of its answer, and no other one can go on with it");
  }
  response_ = {.status = head.status, .content_type = std::move(head.content_type)};
  const bool own_cors = dispatcher_.options().http.cors.has_value();
  for (const auto& [name, value] : passed_on(head.headers))
    if (!own_cors || !name.starts_with("Access-Control-")) response_.headers.add(name, value);
  if (explain_) response_.headers.add("X-Octavo-Explain", choice_.explanation);
  event_stream_ = response_.content_type.starts_with("text/event-stream");
  if (!event_stream_) return;
  streaming_ = true;
  exchange_->start_stream(std::move(response_));
}

void Forwarding::on_body(std::string_view piece) {
  if (!answered_) {
    answered_ = true;
    if (migrations_ == 0)
      dispatcher_.metrics().first_byte(static_cast<double>(now_us() - arrived_us_) * 1e-6);
    dispatcher_.first_token(choice_.booking);
  }
  if (streaming_) return send_back(piece);
  response_.body += piece;
  if (response_.body.size() < kGatheredBytesMax) return;
  streaming_ = true;
  exchange_->start_stream(std::move(response_));
}

void Forwarding::send_back(std::string_view piece) {
  dispatcher_.grow(choice_.booking, 1);
  if (!event_stream_ || !resumable_) return void(exchange_->write(piece));
  if (const std::string events = resumable_->push(piece); !events.empty()) exchange_->write(events);
  if (!resumable_->failed()) return;
  if (const auto call = call_.lock()) call->cancel();
  on_broken("it says so");
}

void Forwarding::on_end(Result<> result) {
  const bool resumable = streaming_ && event_stream_ && resumable_;
  if (result && resumable)
    if (const std::string last = resumable_->finish(); !last.empty()) exchange_->write(last);
  if (resumable && resumable_->failed()) return on_broken("it says so");
  if (result || (resumable && resumable_->ended())) {
    end_attempt(response_.status >= 500 ? Outcome::failure : Outcome::success);
    return streaming_ ? finish() : answer(std::move(response_));
  }
  on_broken(result.error().message);
}

void Forwarding::on_broken(std::string reason) {
  end_attempt(Outcome::failure);
  if (hedge_.number != 0) return hedge_wins();
  if (!streaming_) return retry(std::move(reason));
  log_warning("a stream of {} ended early: {}", exchange_->request().path, reason);
  if (!migrate()) refuse(502, "the replica failed in the middle of its answer");
}

// The stream goes on at another replica. False: it cannot.
bool Forwarding::migrate() {
  if (!event_stream_ || !resumable_) return false;
  if (const std::optional<std::string> rest = resumable_->rest()) {
    exchange_->write(*rest);
    finish();
    return true;
  }
  if (!resumable_->knows_tokens() || ++migrations_ > dispatcher_.options().migration_limit) return false;
  resumable_->lost();
  body_ = std::make_shared<const std::string>(resumable_->body());
  attempts_ = 0;
  answered_ = false;
  attempt();
  return true;
}

void Forwarding::retry(std::string reason) {
  const RetryOptions& options = dispatcher_.options().retry;
  response_ = {};
  answered_ = false;
  if (attempts_ >= options.attempts_max) {
    dispatcher_.metrics().retries_exhausted();
    return refuse(502, fmt::format("no replica could answer: {}", reason));
  }
  dispatcher_.metrics().retried();
  log_info("trying again after {}: {}", attempts_, reason);
  const double unit = static_cast<double>(dispatcher_.draw() >> 11) * 0x1p-53;
  const double backoff =
      std::min<double>(options.initial_backoff_ms * std::pow(options.backoff_multiplier, attempts_ - 1),
                       options.max_backoff_ms);
  const double ms = backoff * (1 + options.jitter * (2 * unit - 1));
  loop_.after(static_cast<int>(ms), [self = shared_from_this()] {
    if (!self->over_) self->attempt();
  });
}

void Forwarding::end_attempt(Outcome outcome) {
  if (!choice_.endpoint) return;
  if (outcome == Outcome::failure) dispatcher_.metrics().worker_failed(choice_.endpoint->label());
  dispatcher_.ended(choice_.booking, outcome);
  choice_.endpoint.reset();
}

void Forwarding::answer(http::Response response) {
  dispatcher_.metrics().answered(response.status, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  over_ = true;
  exchange_->respond(std::move(response));
}

// Says that there is no answer, or no more of it. Of a stream the exchange is dropped unfinished then: nobody
// takes it for complete.
void Forwarding::refuse(int status, const std::string& message) {
  if (!streaming_) return answer(openai::error_response(status, message));
  dispatcher_.metrics().answered(status, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  if (event_stream_) {
    dispatcher_.metrics().migrated(false);
    exchange_->write("data: " + openai::error_json(status, message) + "\n\n");
  }
  over_ = true;
}

void Forwarding::finish() {
  dispatcher_.metrics().answered(200, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  exchange_->finish();
  over_ = true;
}

void Forwarding::client_gone() {
  if (std::exchange(over_, true)) return;
  if (const auto call = call_.lock()) call->cancel();
  end_attempt(Outcome::neither);
  hedge_ends(Outcome::neither);
  dispatcher_.metrics().answered(499, static_cast<double>(now_us() - arrived_us_) * 1e-6);
}

}  // namespace octavo::fleet
