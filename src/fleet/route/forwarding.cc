#include "fleet/route/forwarding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "fleet/relay/refusal.h"
#include "fleet/relay/relay.h"
#include "fleet/scan/request_scan.h"
#include "openai/anthropic_errors.h"
#include "openai/errors.h"
#include "openai/routes.h"

namespace octavo::fleet {
namespace {

constexpr std::string_view kRankHeader = "X-data-parallel-rank";  // vLLM's
constexpr std::size_t kRefusalBytesMax = 1 << 20;  // of an error's body; what follows is cut off

// A POST whose engine reads JSON.
bool has_json(const http::Request& request) {
  std::string_view type = request.headers.find("Content-Type").value_or("application/json");
  type = type.substr(0, type.find(';'));
  return request.method == "POST" && !request.body.empty() &&
         (http::equal_ignoring_case(type, "application/json") || type.ends_with("+json"));
}

std::string_view text_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::unhealthy:
      return "does not answer its health checks";
    case Trouble::restarted:
      return "has restarted";
    case Trouble::forgotten:
    case Trouble::stalled:
      return "has nothing to do and does not answer";
  }
  return "";
}

}  // namespace

void Forwarding::start(const RouteContext& context, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange, TenantShare share, std::string tenant) {
  std::make_shared<Forwarding>(context, loop, std::move(exchange), std::move(share), std::move(tenant))
      ->begin();
}

Forwarding::Forwarding(const RouteContext& context, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange, TenantShare share, std::string tenant)
    : context_(context),
      balancer_(context.balancer),
      loop_(loop),
      exchange_(std::move(exchange)),
      share_(std::move(share)),
      arrived_us_(now_us()),
      tenant_(std::move(tenant)),
      admitted_(!context.queue) {}

Forwarding::~Forwarding() {
  drop_attempts(Outcome::neither);
  if (admitted_) context_.admission.leave();
}

void Forwarding::begin() {
  const http::Request& request = exchange_->request();
  context_.retries.earn();
  request_ = scan_request(request);
  if (request_.unreadable && has_json(request)) {
    const Error error{ErrorCode::invalid_argument, "the body is not valid JSON: " + request_.body_error, ""};
    const openai::Route* route = openai::find_route(request.path);
    const bool anthropic = route && route->protocol == openai::Protocol::anthropic;
    return answer(anthropic ? anthropic::error_response(error) : openai::error_response(error));
  }
  if (context_.tokens) context_.tokens->write(request, request_);
  explain_ = request.headers.find("X-Octavo-Explain").has_value();
  read_headers();
  if (!request_.stored_response.empty()) owner_ = context_.stored.worker_of(request_.stored_response);
  exchange_->on_close([&loop = loop_, weak = weak_from_this()](http::CloseReason) {
    loop.post([weak] {
      if (const auto self = weak.lock()) self->client_gone();
    });
  });
  balancer_.knows(request_.model) ? enter() : find_model();
}

// Tenants' keys are for the router: workers get the router's own, if it has one.
void Forwarding::read_headers() {
  const auto& options = context_.options;
  const bool own_key = !options.tenants.empty();
  for (const auto& [name, value] : passed_on(exchange_->request().headers))
    if (!own_key || !http::equal_ignoring_case(name, "Authorization")) headers_.add(name, value);
  if (own_key && !options.api_keys.empty())
    headers_.add("Authorization", "Bearer " + options.api_keys.front());
  if (!headers_.find("X-Request-Id")) headers_.add("X-Request-Id", fmt::format("{:016x}", balancer_.draw()));
}

// A worker may have got the model since it last listed its models.
void Forwarding::find_model() {
  context_.monitor.refresh_models([&loop = loop_, self = shared_from_this()] {
    loop.post([self] {
      if (self->phase_ == Phase::over) return;
      const bool named_by_path = self->exchange_->request().body.empty();
      if (named_by_path) self->request_.model.clear();  // any worker says that it does not have it
      if (self->balancer_.knows(self->request_.model)) return self->enter();
      self->refuse(404, fmt::format("The model `{}` does not exist.", self->request_.model), "model");
    });
  });
}

void Forwarding::go() {
  const http::Request& request = exchange_->request();
  if (context_.options.migration_limit > 0 && request_.stream)
    resumable_ = ResumableStream::of(request.path, request.body);
  if (resumable_) body_ = std::make_shared<const std::string>(resumable_->body());
  if (context_.options.disaggregated && prefill()) return;
  if (!send()) refuse(503, "no replica is available");
}

Role Forwarding::answering_part() const { return context_.options.disaggregated ? Role::decode : Role::both; }

ChoiceOptions Forwarding::choice_options(Role part) const {
  return {.part = part,
          .excluded = tried_,
          .rested = refusal_.has_value() || prefill_busy_,
          .computed = prefilled_ && part != Role::prefill,
          .worker = owner_,
          .explain = explain_};
}

// Sends the request to the best worker that has not had it yet. False: no such worker exists.
bool Forwarding::send() {
  const std::int64_t begun = now_us();
  auto choice = balancer_.choose(request_, choice_options(answering_part()));
  context_.metrics.decided(static_cast<double>(now_us() - begun) * 1e-6);
  if (!choice) return false;
  ++tries_;
  Attempt& attempt = attempts_[attempts_[0].number == 0 ? 0 : 1];
  open(attempt, *std::move(choice), body(), left_ms());
  if (const int ms = context_.options.hedge_after_ms; ms > 0 && phase_ == Phase::waiting)
    loop_.after(ms, [weak = weak_from_this(), number = attempt.number] {
      if (const auto self = weak.lock(); self && self->find(number)) self->hedge();
    });
  return true;
}

bool Forwarding::send_again() {
  tried_.clear();
  return send();
}

void Forwarding::open(Attempt& attempt, Choice choice, std::shared_ptr<const std::string> body,
                      int timeout_ms) {
  context_.metrics.selected(choice.endpoint->label());
  attempt = {.number = ++numbers_, .sent_us = now_us(), .choice = std::move(choice)};
  const int number = attempt.number;
  tried_.push_back(attempt.choice.booking.endpoint);
  const auto self = shared_from_this();
  attempt.call =
      loop_.call(call_request(*attempt.choice.endpoint, std::move(body), timeout_ms),
                 {.head = [self, number](http::Response head) { self->on_head(number, std::move(head)); },
                  .body = [self, number](std::string_view piece) { self->on_body(number, piece); },
                  .end = [self, number](const Result<>& result) { self->on_end(number, result); },
                  .ready = [self] { return self->exchange_->unsent_bytes() < kUnsentBytesMax; }});
  balancer_.watch(attempt.choice.booking, [&loop = loop_, weak = weak_from_this(), number](Trouble trouble) {
    loop.post([weak, number, trouble] {
      if (const auto it = weak.lock()) it->on_trouble(number, trouble);
    });
  });
}

http::CallRequest Forwarding::call_request(const Endpoint& endpoint, std::shared_ptr<const std::string> body,
                                           int timeout_ms) const {
  const http::Request& request = exchange_->request();
  http::CallRequest call{.address = *http::parse_base_url(endpoint.url),
                         .method = request.method,
                         .target = target_of(request),
                         .headers = headers_,
                         .body = std::move(body),
                         .timeout_ms = timeout_ms};
  // Later attempts have what is left of the client's own deadline.
  if (const double seconds = request_.timeout_s; seconds > 0 && numbers_ > 1) {
    const double passed = static_cast<double>(now_us() - arrived_us_) * 1e-6;
    call.headers.set("X-Request-Timeout", fmt::format("{:.3f}", std::max(seconds - passed, 0.001)));
  }
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

// Another worker gets the request, too: the first whose answer begins counts.
void Forwarding::hedge() {
  if (phase_ != Phase::waiting || leading_ || under_way() != 1 || !context_.retries.take(now_us())) return;
  if (!send()) return;
  find(numbers_)->hedges = true;
  --tries_;
}

Forwarding::Attempt* Forwarding::find(int number) {
  const auto found = std::ranges::find(attempts_, number, &Attempt::number);
  return number != 0 && found != attempts_.end() ? &*found : nullptr;
}

int Forwarding::under_way() const {
  return static_cast<int>(std::ranges::count_if(attempts_, [](const Attempt& a) { return a.number != 0; }));
}

void Forwarding::settle(Attempt& attempt, Outcome outcome) {
  if (attempt.number == 0) return;
  if (const auto call = attempt.call.lock()) call->cancel();
  if (attempt.hedges) context_.metrics.hedged(leading_);
  balancer_.ended(attempt.choice.booking, outcome);
  attempt = {};
}

void Forwarding::drop_attempts(Outcome outcome) {
  for (Attempt& attempt : attempts_) settle(attempt, outcome);
}

void Forwarding::on_head(int number, http::Response head) {
  if (Attempt* attempt = find(number)) attempt->answer = std::move(head);
}

void Forwarding::on_body(int number, std::string_view piece) {
  Attempt* attempt = find(number);
  if (!attempt) return;
  std::string& gathered = attempt->answer.body;
  if (phase_ == Phase::prefilling || worth_a_retry(attempt->answer.status)) {
    const std::size_t most = phase_ == Phase::prefilling ? kGatheredBytesMax : kRefusalBytesMax;
    return void(gathered += piece.substr(0, most - std::min(most, gathered.size())));
  }
  if (!leading_ && !lead(*attempt)) return;
  if (phase_ == Phase::streaming) return send_back(*attempt, piece);
  gathered += piece;
  balancer_.grow(attempt->choice.booking, 0);
  if (is_stream(attempt->answer) || gathered.size() >= kGatheredBytesMax) start_stream(*attempt);
}

void Forwarding::on_end(int number, const Result<>& result) {
  Attempt* attempt = find(number);
  if (!attempt) return;
  if (phase_ == Phase::prefilling) return on_prefilled(*attempt, result);
  if (!result) {
    if (resumable_ && resumable_->ended()) return finish();
    return on_lost(*attempt, result.error());
  }
  if (worth_a_retry(attempt->answer.status)) return on_refused(*attempt);
  const bool elsewhere = attempt->answer.status == 404 && !request_.stored_response.empty() && owner_.empty();
  if (elsewhere && phase_ == Phase::waiting) {
    refusal_ = for_client(*attempt, std::move(attempt->answer));
    settle(*attempt, Outcome::success);
    if (under_way() == 0 && !send()) give_up("no replica has the response");
    return;
  }
  if (!leading_ && !lead(*attempt)) return;
  if (is_event_stream(attempt->answer) && phase_ == Phase::waiting) start_stream(*attempt);
  if (phase_ == Phase::streaming) {
    if (event_stream_ && resumable_) {
      if (const std::string last = resumable_->finish(); !last.empty()) exchange_->write(last);
      if (resumable_->failed()) return on_lost(*attempt, {ErrorCode::io, "it says so", ""});
    }
    settle(*attempt, Outcome::success);
    blame_suspects(200);
    return finish();
  }
  blame_suspects(attempt->answer.status);
  http::Response whole = for_client(*attempt, std::move(attempt->answer));
  if (whole.status / 100 == 2) context_.stored.learn(response_of(whole.body), attempt->choice.endpoint->name);
  settle(*attempt, Outcome::success);
  answer(std::move(whole));
}

void Forwarding::on_trouble(int number, Trouble trouble) {
  Attempt* attempt = find(number);
  if (!attempt) return;
  // An idle engine says nothing of a request whose tools run: it ends with its worker or its connection.
  const bool idle = trouble == Trouble::forgotten || trouble == Trouble::stalled;
  if (idle && request_.server_tools && phase_ != Phase::prefilling) return;
  if (trouble == Trouble::forgotten && phase_ != Phase::prefilling) {
    attempt->forgotten = true;
    if (!request_.tokens.empty()) hedge();
    return;
  }
  // The client does not read, so that what the worker has sent may not have come here.
  if (trouble == Trouble::stalled && exchange_->unsent_bytes() >= kUnsentBytesMax) return;
  attempt->forgotten = trouble == Trouble::forgotten;
  on_lost(*attempt,
          {ErrorCode::io, fmt::format("{} {}", attempt->choice.endpoint->url, text_of(trouble)), ""});
}

// The first bytes of an answer that is no refusal: it is the one. False: it cannot be.
bool Forwarding::lead(Attempt& attempt) {
  if (phase_ == Phase::streaming && !continues(attempt)) {
    settle(attempt, Outcome::neither);
    if (!migrate()) break_off();  // another one may know how to
    return false;
  }
  for (Attempt& other : attempts_)
    if (&other != &attempt) settle(other, other.forgotten ? Outcome::failure : Outcome::neither);
  leading_ = true;
  balancer_.first_token(attempt.choice.booking);
  if (phase_ == Phase::streaming)
    context_.metrics.migrated(true);
  else
    context_.metrics.first_byte(static_cast<double>(now_us() - arrived_us_) * 1e-6);
  return true;
}

// Another worker could answer: the failures before speak of their workers.
void Forwarding::blame_suspects(int status) {
  for (const auto& suspect : std::exchange(suspects_, {}))
    if (status < 400) balancer_.failed(*suspect);
}

// After the first worker's head the client takes only what follows it.
bool Forwarding::continues(const Attempt& attempt) const {
  return attempt.answer.status == 200 && resumable_ &&
         (!resumable_->begun() || attempt.answer.headers.find("X-Octavo-Resumed"));
}

void Forwarding::on_refused(Attempt& attempt) {
  const int status = attempt.answer.status;
  const bool own = past_own_deadline() || is_the_requests_own(attempt.answer.body);
  const auto pause_s = retry_after_s(attempt.answer);
  const auto worker = attempt.choice.endpoint;
  refusal_ = for_client(attempt, std::move(attempt.answer));
  if (is_backpressure(status) && context_.queue && !own) balancer_.refused(attempt.choice.booking, pause_s);
  settle(attempt, Outcome::neither);
  if (own) {
    drop_attempts(Outcome::neither);
    return give_up("the request itself");
  }
  if (is_backpressure(status) && context_.queue) {
    if (under_way() == 0 && phase_ == Phase::waiting) return wait_again();
  } else if (is_backpressure(status)) {
    if (pause_s) balancer_.pause(*worker, *pause_s);
  } else {
    context_.metrics.worker_failed(worker->url);
    suspects_.push_back(worker);
  }
  if (under_way() > 0) return;  // the other of two
  const std::string reason = fmt::format("status {}", status);
  context_.retries.take(now_us()) ? retry(reason) : give_up(reason);
}

void Forwarding::on_lost(Attempt& attempt, const Error& error) {
  if (phase_ == Phase::prefilling) return on_prefilled(attempt, std::unexpected(error));
  const auto worker = attempt.choice.endpoint;
  const bool late = left_ms() == 0;
  // That nothing listens there, or nothing came in all the time, is the worker's; a connection that ends
  // later, the request may have caused.
  const bool unreachable = error.code == ErrorCode::unavailable;
  const bool silent = late && !leading_ && !past_own_deadline();
  const bool cut = phase_ == Phase::streaming && !late;
  context_.metrics.worker_failed(worker->url);
  settle(attempt, unreachable || silent ? Outcome::failure : Outcome::neither);
  leading_ = false;
  if (!unreachable && !silent && !cut) suspects_.push_back(worker);
  if (under_way() > 0) return;  // the other of two
  if (late) return refuse_late();
  if (cut) {
    log_warning("a stream of {} ended early: {}", exchange_->request().path, error.message);
    if (migrate()) return suspects_.push_back(worker);
    balancer_.failed(*worker);
    return break_off();
  }
  // A worker that dies or freezes loses many requests at once: each may go to another one. What is lost there
  // as well takes from the budget.
  const bool free = unreachable || ++losses_ == 1;
  free || context_.retries.take(now_us()) ? retry(error.message) : give_up(error.message);
}

// A worker that has not had the request gets it at once. A worker that has had it gets it again after a
// backoff, unless it has named a time (Retry-After).
void Forwarding::retry(const std::string& reason) {
  if (tries_ >= context_.options.retry.attempts_max) return give_up(reason);
  log_info("trying again after {}: {}", tries_, reason);
  if (send()) return context_.metrics.retried();
  if (refusal_ && retry_after_s(*refusal_)) return give_up(reason);
  retry_later(reason);
}

void Forwarding::retry_later(const std::string& reason) {
  const RetryOptions& options = context_.options.retry;
  const double unit = static_cast<double>(balancer_.draw() >> 11) * 0x1p-53;
  const double backoff = std::min<double>(
      options.initial_backoff_ms * std::pow(options.backoff_multiplier, tries_ - 1), options.max_backoff_ms);
  const double ms = backoff * (1 + options.jitter * (2 * unit - 1));
  loop_.after(static_cast<int>(ms), [self = shared_from_this(), reason] {
    if (self->phase_ == Phase::over) return;
    self->send_again() ? self->context_.metrics.retried() : self->give_up(reason);
  });
}

// The last answer of a worker is better than the router's own.
void Forwarding::give_up(const std::string& reason) {
  if (tries_ > 1) context_.metrics.retries_exhausted();
  if (phase_ == Phase::streaming) return break_off();
  if (refusal_) return answer(*std::move(refusal_));
  refuse(tries_ >= context_.options.retry.attempts_max ? 502 : 503,
         fmt::format("no replica could answer: {}", reason));
}

// The stream continues at another worker. False: it cannot.
bool Forwarding::migrate() {
  if (!event_stream_ || !resumable_) return false;
  if (const std::optional<std::string> rest = resumable_->rest()) {
    exchange_->write(*rest);
    finish();
    return true;
  }
  if (!resumable_->knows_tokens() || past_own_deadline() || ++migrations_ > context_.options.migration_limit)
    return false;
  resumable_->lost();
  body_ = std::make_shared<const std::string>(resumable_->body());
  tries_ = 0;
  leading_ = false;
  refusal_.reset();
  return send() || send_again();
}

}  // namespace octavo::fleet
