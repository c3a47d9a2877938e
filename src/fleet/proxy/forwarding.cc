#include "fleet/proxy/forwarding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/proxy/disaggregation.h"
#include "fleet/scan/request_scan.h"
#include "http/target.h"
#include "serve/openai/errors.h"

namespace octavo::fleet {
namespace {

constexpr std::size_t kGatheredBytesMax = 64 << 20;  // of an answer that is no stream; beyond it is streamed
constexpr std::size_t kUnsentBytesMax = 256 << 10;   // the replica waits while the client has so much to take

// Of one connection, not of the message (RFC 9110, 7.6.1), or written anew by this side.
constexpr std::array<std::string_view, 11> kOwnHeaders{"connection",
                                                       "keep-alive",
                                                       "proxy-authenticate",
                                                       "proxy-authorization",
                                                       "te",
                                                       "trailer",
                                                       "transfer-encoding",
                                                       "upgrade",
                                                       "content-length",
                                                       "host",
                                                       "date"};

bool passed_on(std::string_view name) {
  return std::ranges::none_of(kOwnHeaders,
                              [&](std::string_view own) { return http::equal_ignoring_case(name, own); }) &&
         !http::equal_ignoring_case(name, "expect");
}

bool worth_a_retry(int status) {
  constexpr std::array<int, 6> kStatuses{408, 429, 500, 502, 503, 504};
  return std::ranges::find(kStatuses, status) != kStatuses.end();
}

}  // namespace

void Forwarding::start(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange) {
  const auto self = std::make_shared<Forwarding>(dispatcher, tokens, loop, std::move(exchange));
  loop.post([self] { self->begin(); });
}

Forwarding::Forwarding(Dispatcher& dispatcher, const PromptTokens* tokens, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange)
    : dispatcher_(dispatcher),
      tokens_(tokens),
      loop_(loop),
      exchange_(std::move(exchange)),
      arrived_us_(now_us()) {}

Forwarding::~Forwarding() {
  end_attempt(Outcome::neither);
  dispatcher_.leave();
}

void Forwarding::begin() {
  const http::Request& request = exchange_->request();
  request_ = scan_request(request);
  if (tokens_) tokens_->write(request, request_);
  explain_ = request.headers.find("X-Octavo-Explain").has_value();
  for (const auto& [name, value] : request.headers)
    if (passed_on(name)) headers_.add(name, value);
  if (!request.headers.find("X-Request-Id"))
    headers_.add("X-Request-Id", fmt::format("{:016x}", dispatcher_.draw()));
  if (!dispatcher_.knows(request_.model))
    return answer(
        openai::error_response(404, fmt::format("The model `{}` does not exist.", request_.model), "model"));
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
  if (request.method != "POST" || !shortened) return false;
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
    decode_body_ = std::make_shared<const std::string>(decode_body(exchange_->request().body, *params));
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
  if (!choice_.endpoint) return answer(openai::error_response(503, "no replica is available"));
  tried_.push_back(choice_.booking.endpoint);
  ++attempts_;
  const auto self = shared_from_this();
  const auto call =
      loop_.call(call_request(*choice_.endpoint, body()),
                 {.head = [self](http::Response head) { self->on_head(std::move(head)); },
                  .body = [self](std::string_view piece) { self->on_body(piece); },
                  .end = [self](Result<> result) { self->on_end(std::move(result)); },
                  .ready = [self] { return self->exchange_->unsent_bytes() < kUnsentBytesMax; }});
  call_ = call;
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
  return call;
}

// The exchange keeps its body while a call runs; a call's events keep this object, and this the exchange.
std::shared_ptr<const std::string> Forwarding::body() const {
  if (decode_body_) return decode_body_;
  const http::Request& request = exchange_->request();
  if (request.body.empty() && request.method != "POST") return nullptr;
  return {exchange_, &request.body};
}

void Forwarding::on_head(http::Response head) {
  if (worth_a_retry(head.status) && attempts_ < dispatcher_.options().retry.attempts_max) {
    if (const auto call = call_.lock()) call->cancel();
    end_attempt(head.status >= 500 ? Outcome::failure : Outcome::neither);
    return retry(fmt::format("status {}", head.status));
  }
  response_ = {.status = head.status, .content_type = std::move(head.content_type)};
  const bool own_cors = dispatcher_.options().http.cors.has_value();
  for (const auto& [name, value] : head.headers)
    if (passed_on(name) && !(own_cors && name.starts_with("Access-Control-")))
      response_.headers.add(name, value);
  if (explain_) response_.headers.add("X-Octavo-Explain", choice_.explanation);
  event_stream_ = response_.content_type.starts_with("text/event-stream");
  if (!event_stream_) return;
  streaming_ = true;
  exchange_->start_stream(std::move(response_));
}

void Forwarding::on_body(std::string_view piece) {
  if (!answered_) {
    answered_ = true;
    dispatcher_.metrics().first_byte(static_cast<double>(now_us() - arrived_us_) * 1e-6);
    dispatcher_.first_token(choice_.booking);
  }
  if (streaming_) {
    dispatcher_.grow(choice_.booking, 1);
    exchange_->write(piece);
    return;
  }
  response_.body += piece;
  if (response_.body.size() < kGatheredBytesMax) return;
  streaming_ = true;
  exchange_->start_stream(std::move(response_));
}

void Forwarding::on_end(Result<> result) {
  if (result) {
    end_attempt(response_.status >= 500 ? Outcome::failure : Outcome::success);
    if (!streaming_) return answer(std::move(response_));
    dispatcher_.metrics().answered(200, static_cast<double>(now_us() - arrived_us_) * 1e-6);
    exchange_->finish();
    over_ = true;
    return;
  }
  end_attempt(Outcome::failure);
  if (!streaming_) return retry(result.error().message);
  log_warning("a stream of {} ended early: {}", exchange_->request().path, result.error().message);
  if (event_stream_)
    exchange_->write("data: " + openai::error_json(502, "the replica failed in the middle of its answer") +
                     "\n\n");
  dispatcher_.metrics().answered(502, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  over_ = true;  // the exchange is dropped unfinished: nobody takes the stream for complete
}

void Forwarding::retry(std::string reason) {
  const RetryOptions& options = dispatcher_.options().retry;
  response_ = {};
  answered_ = false;
  if (attempts_ >= options.attempts_max) {
    dispatcher_.metrics().retries_exhausted();
    return answer(openai::error_response(502, fmt::format("no replica could answer: {}", reason)));
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
  if (outcome == Outcome::failure) dispatcher_.metrics().worker_failed(choice_.endpoint->url);
  dispatcher_.ended(choice_.booking, outcome);
  choice_.endpoint.reset();
}

void Forwarding::answer(http::Response response) {
  dispatcher_.metrics().answered(response.status, static_cast<double>(now_us() - arrived_us_) * 1e-6);
  over_ = true;
  exchange_->respond(std::move(response));
}

void Forwarding::client_gone() {
  if (std::exchange(over_, true)) return;
  if (const auto call = call_.lock()) call->cancel();
  end_attempt(Outcome::neither);
  dispatcher_.metrics().answered(499, static_cast<double>(now_us() - arrived_us_) * 1e-6);
}

}  // namespace octavo::fleet
