#include "fleet/sidecar/split_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/observe/engine_metrics.h"
#include "fleet/relay/blind_wait.h"
#include "fleet/relay/cached_usage.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/refusal.h"
#include "fleet/relay/relay.h"
#include "fleet/sidecar/usage.h"

namespace octavo::fleet {

enum class Look : std::uint8_t {
  busy,
  idle,
  unreachable,
  blind,  // the engine reports no load
};

namespace {

constexpr std::string_view kPrefillers = "x-prefiller-host-port";
constexpr std::size_t kHeldBytesMax = 1 << 20;

constexpr int kLookMs = 1'000;  // interval between checks of a prefill engine that has not responded
constexpr int kLookTimeoutMs = 2'000;
// An engine needs this time to read and tokenise a long prompt, before its metrics show the request.
constexpr int kIdleMs = 3'000;
constexpr int kUnreachableMax = 3;

Look look_of(const Result<http::Response>& metrics) {
  EndpointState state;
  if (!metrics) return Look::unreachable;
  if (metrics->status != 200 || !read_engine_metrics(metrics->body, state)) return Look::blind;
  return state.running + state.waiting == 0 ? Look::idle : Look::busy;
}

}  // namespace

SplitRequest::SplitRequest(const SidecarOptions& options, http::ClientLoop& loop,
                           std::shared_ptr<http::Exchange> exchange, std::optional<http::Address> prefiller,
                           std::uint64_t draw)
    : options_(options),
      loop_(loop),
      exchange_(std::move(exchange)),
      prefiller_(std::move(prefiller)),
      draw_(draw),
      trace_(options.tracer, "sidecar", exchange_->request()) {
  const bool decoded = prefiller_ && exchange_->request().method == "POST";
  for (const auto& [name, value] : passed_on(exchange_->request().headers))
    if (!http::equal_ignoring_case(name, kPrefillers) &&
        !(decoded && http::equal_ignoring_case(name, "Content-Encoding")))
      headers_.add(name, value);
  if (!headers_.find("X-Request-Id")) headers_.add("X-Request-Id", fmt::format("{:016x}", draw_));
}

void SplitRequest::watch_client() {
  exchange_->on_close([&loop = loop_, weak = weak_from_this()](http::CloseReason) {
    loop.post([weak] {
      if (const auto self = weak.lock()) self->client_disconnected();
    });
  });
}

void SplitRequest::prefill(std::string body, bool to_its_end, Then then, http::Headers more) {
  prefill(std::make_shared<Prefill>(Prefill{.body = std::make_shared<const std::string>(std::move(body)),
                                            .more = std::move(more),
                                            .to_its_end = to_its_end,
                                            .then = std::move(then)}));
}

void SplitRequest::prefill_meanwhile(std::string body, http::Headers more) {
  prefill(
      std::move(body), true,
      [self = shared_from_this()](const Result<http::Response>& reply) {
        if (reply && reply->status == 200) return;
        log_warning("{} did not prefill: {}", self->prefiller().text(),
                    reply ? fmt::format("status {}", reply->status) : reply.error().message);
      },
      std::move(more));
}

void SplitRequest::prefill(const std::shared_ptr<Prefill>& prefill_call) {
  http::CallRequest request = call_request(prefiller(), prefill_call->body);
  for (const auto& [name, value] : prefill_call->more) request.headers.add(name, value);
  if (!prefill_call->to_its_end)
    request.timeout_ms = std::min(request.timeout_ms, options_.prefill_timeout_ms);
  const auto self = shared_from_this();
  prefill_call->span = trace_.begin(request.headers);
  prefill_call->sent_us = now_us();
  prefill_call->idle_since_us = 0;
  prefill_call->unreachable = 0;
  prefill_call->call = gather(std::move(request), [=](const Result<http::Response>& reply) {
    self->prefill_ended(prefill_call, reply);
  });
  if (prefill_call->to_its_end) return;
  call_ = prefill_call->call;
  watch(prefill_call, prefill_call->attempt);
}

void SplitRequest::prefill_ended(const std::shared_ptr<Prefill>& prefill_call,
                                 const Result<http::Response>& reply) {
  const int attempt = prefill_call->attempt++;
  trace_.end(prefill_call->span, "prefill", prefiller().url(), reply ? reply->status : 0);
  if ((reply && !worth_a_retry(reply->status)) || attempt >= options_.prefill_retries_max)
    return prefill_call->then(reply);
  loop_.after(options_.prefill_retry_backoff_ms, [self = shared_from_this(), prefill_call] {
    if (prefill_call->to_its_end || !self->over_) self->prefill(prefill_call);
  });
}

// Checks the engine regularly until this attempt ends.
void SplitRequest::watch(const std::shared_ptr<Prefill>& prefill_call, int attempt) {
  const auto self = shared_from_this();
  const auto open = [=] { return !self->over_ && prefill_call->attempt == attempt; };
  loop_.after(kLookMs, [=] {
    if (!open()) return;
    self->gather({.address = self->prefiller(), .target = "/metrics", .timeout_ms = kLookTimeoutMs},
                 [=](const Result<http::Response>& metrics) {
                   if (!open()) return;
                   self->judge(prefill_call, look_of(metrics));
                   if (open()) self->watch(prefill_call, attempt);
                 });
  });
}

// An idle engine has lost the request, so the request is sent again. An engine that does not respond to
// checks will not respond to the request, either.
void SplitRequest::judge(const std::shared_ptr<Prefill>& prefill_call, Look look) {
  const std::int64_t now = now_us();
  const auto ms_since = [now](std::int64_t begun_us) { return (now - begun_us) / 1000; };
  prefill_call->unreachable = look == Look::unreachable ? prefill_call->unreachable + 1 : 0;
  if (look != Look::idle)
    prefill_call->idle_since_us = 0;
  else if (prefill_call->idle_since_us == 0)
    prefill_call->idle_since_us = now;
  if (prefill_call->unreachable == kUnreachableMax)
    return give_up(prefill_call, "the engine does not answer", false);
  if (look == Look::blind &&
      ms_since(prefill_call->sent_us) >= blind_wait_ms(options_.blind_wait_ms, prefill_call->body->size()))
    return give_up(prefill_call, "the engine reports no load and does not answer", false);
  if (look == Look::idle &&
      ms_since(prefill_call->idle_since_us) >= blind_wait_ms(kIdleMs - kLookMs, prefill_call->body->size()))
    give_up(prefill_call, "the engine reports no running request, but did not answer", true);
}

void SplitRequest::give_up(const std::shared_ptr<Prefill>& prefill_call, std::string_view reason,
                           bool may_retry) {
  if (const auto call = prefill_call->call.lock()) call->cancel();
  const Result<http::Response> lost = failure(ErrorCode::io, "{}", reason);
  if (may_retry) return prefill_ended(prefill_call, lost);
  ++prefill_call->attempt;
  trace_.end(prefill_call->span, "prefill", prefiller().url(), 0);
  prefill_call->then(lost);
}

void SplitRequest::call_prefiller(int port, std::string target, Then then) {
  http::Address address = prefiller();
  address.port = static_cast<std::uint16_t>(port);
  call_ = gather({.address = std::move(address), .target = std::move(target)}, std::move(then));
}

// The client may get the reply, so the reply keeps no headers of the connection to the engine.
std::weak_ptr<http::Call> SplitRequest::gather(http::CallRequest request, Then then) {
  const auto reply = std::make_shared<http::Response>();
  const std::string engine_url = request.address.url();
  return loop_.call(std::move(request),
                    {.head =
                         [reply, engine_url](http::Response head) {
                           head.headers = passed_back(head.headers, engine_url);
                           *reply = std::move(head);
                         },
                     .body =
                         [reply](std::string_view piece) {
                           if (reply->body.size() < kGatheredBytesMax) reply->body += piece;
                         },
                     .end =
                         [self = shared_from_this(), reply, then = std::move(then)](const Result<>& result) {
                           if (!result) return then(std::unexpected(result.error()));
                           then(std::move(*reply));
                         }});
}

http::CallRequest SplitRequest::call_request(const http::Address& address,
                                             std::shared_ptr<const std::string> body) const {
  const http::Request& request = exchange_->request();
  http::CallRequest call{.address = address,
                         .method = request.method,
                         .target = target_of(request),
                         .headers = headers_,
                         .body = std::move(body),
                         .timeout_ms = options_.request_timeout_ms};
  return call;
}

void SplitRequest::decode_alone() {
  const http::Request& request = exchange_->request();
  const bool bodiless = request.body.empty() && request.method != "POST";
  decode(bodiless ? nullptr : std::shared_ptr<const std::string>(exchange_, &request.body));
}

void SplitRequest::decode(std::string body, std::optional<std::int64_t> cached_tokens) {
  cached_tokens_ = cached_tokens;
  decode(std::make_shared<const std::string>(std::move(body)));
}

void SplitRequest::decode_if_cached(std::string body, Otherwise otherwise) {
  otherwise_ = std::move(otherwise);
  decode(std::make_shared<const std::string>(std::move(body)));
}

void SplitRequest::decode(std::shared_ptr<const std::string> body) {
  if (over_) return;
  const auto self = shared_from_this();
  http::CallRequest request = call_request(*http::parse_base_url(options_.decoder_url), std::move(body));
  decode_span_ = trace_.begin(request.headers);
  call_ = loop_.call(std::move(request),
                     {.head = [self](http::Response head) { self->on_head(std::move(head)); },
                      .body = [self](std::string_view piece) { self->on_body(piece); },
                      .end = [self](const Result<>& result) { self->on_end(result); },
                      .ready = [self] { return self->exchange_->unsent_bytes() < kUnsentBytesMax; }});
}

void SplitRequest::on_head(http::Response head) {
  status_ = head.status;
  response_ = {.status = head.status,
               .content_type = std::move(head.content_type),
               .headers = passed_back(head.headers, options_.decoder_url)};
  event_stream_ = response_.content_type.starts_with("text/event-stream");
}

void SplitRequest::on_body(std::string_view piece) {
  if (!event_stream_) {
    if (streaming_) return void(exchange_->write(piece));
    response_.body += piece;
    if (response_.body.size() < kGatheredBytesMax) return;
    streaming_ = true;
    return exchange_->start_stream(std::exchange(response_, {}));
  }
  if (otherwise_) return hold(piece);
  if (!cached_tokens_) return pass_on(std::string(piece));
  std::string out;
  for (const std::string& event : events_.push(piece)) out += with_cached_tokens(event, *cached_tokens_);
  pass_on(out);
}

// Holds the stream back until its events show whether it is an answer or a refusal. Above kHeldBytesMax,
// the stream counts as an answer.
void SplitRequest::hold(std::string_view piece) {
  Beginning beginning = Beginning::unknown;
  for (const std::string& event : events_.push(piece)) {
    if (beginning == Beginning::unknown) beginning = beginning_of(event);
    held_ += event;
  }
  if (beginning == Beginning::not_cached) {
    if (const auto call = call_.lock()) call->cancel();
    held_.clear();
    events_.clear();
    return std::exchange(otherwise_, nullptr)(shared_from_this());
  }
  if (beginning == Beginning::unknown && held_.size() + events_.rest().size() < kHeldBytesMax) return;
  otherwise_ = nullptr;
  pass_on(std::exchange(held_, {}) + events_.rest());
  events_.clear();
}

void SplitRequest::pass_on(const std::string& bytes) {
  if (!std::exchange(streaming_, true)) exchange_->start_stream(std::exchange(response_, {}));
  if (!bytes.empty()) exchange_->write(bytes);
}

void SplitRequest::on_end(const Result<>& result) {
  trace_.end(decode_span_, "decode", options_.decoder_url, result ? status_ : 0);
  if (!result) {
    if (!streaming_) return refuse(502, fmt::format("the engine did not answer: {}", result.error().message));
    log_warning("the stream of {} ended early: {}", path(), result.error().message);
    if (event_stream_)
      exchange_->write(proxy_error_event(path(), 502, "the engine failed in the middle of its answer"));
    over_ = true;  // the connection closes, so that the client notices that the stream is incomplete
    return;
  }
  if (event_stream_) pass_on(held_ + events_.rest());
  if (streaming_) {
    over_ = true;
    return exchange_->finish();
  }
  if (otherwise_ && not_cached(response_.body)) return std::exchange(otherwise_, nullptr)(shared_from_this());
  if (cached_tokens_) response_.body = with_cached_tokens(response_.body, *cached_tokens_);
  answer(std::move(response_));
}

void SplitRequest::answer(http::Response response) {
  if (std::exchange(over_, true)) return;
  status_ = response.status;
  exchange_->respond(std::move(response));
}

void SplitRequest::refuse(int status, std::string_view message) {
  answer(proxy_error(path(), status, message));
}

void SplitRequest::client_disconnected() {
  if (std::exchange(over_, true)) return;
  if (const auto call = call_.lock()) call->cancel();
}

}  // namespace octavo::fleet
