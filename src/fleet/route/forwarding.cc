#include "fleet/route/forwarding.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <cmath>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "batches/line.h"
#include "fleet/relay/blind_wait.h"
#include "fleet/relay/proxy_error.h"
#include "fleet/relay/refusal.h"
#include "fleet/relay/relay.h"

namespace octavo::fleet {
namespace {

// bodies up to this size are scanned on the event loop, in less than a millisecond
constexpr std::size_t kReadHereMax = 16 << 10;
constexpr std::size_t kRefusalBytesMax = 1 << 20;  // bytes of an error response that are kept

bool has_json(const http::Request& request) {
  std::string_view type = request.headers.find("Content-Type").value_or("application/json");
  type = type.substr(0, type.find(';'));
  return request.method == "POST" && !request.body.empty() &&
         (http::equal_ignoring_case(type, "application/json") || type.ends_with("+json"));
}

std::string name_of(const WorkerOfId::Worker& worker) { return worker ? worker->name : std::string(); }

std::string_view text_of(Trouble trouble) {
  switch (trouble) {
    case Trouble::unhealthy:
      return "does not answer its health checks";
    case Trouble::restarted:
      return "has restarted";
    case Trouble::forgotten:
    case Trouble::stalled:
      return "reports no running request, but did not answer";
  }
  return "";
}

}  // namespace

void Forwarding::start(const RouteContext& context, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange, TenantShare share, std::string tenant) {
  std::make_shared<Forwarding>(context, loop, exchange, std::move(share), std::move(tenant))->begin(exchange);
}

Forwarding::Forwarding(const RouteContext& context, http::ClientLoop& loop,
                       std::shared_ptr<http::Exchange> exchange, TenantShare share, std::string tenant)
    : context_(context),
      balancer_(context.balancer),
      loop_(loop),
      share_(std::move(share)),
      in_(context, exchange, std::move(tenant)),
      back_(std::move(exchange)),
      cost_(in_.wants_cost()),
      bill_(std::make_shared<Bill>(context.metrics, loop)),
      trace_(context.options.telemetry.tracer, "route", in_.request()),
      admitted_(!context.queue) {}

Forwarding::~Forwarding() {
  drop_attempts(Outcome::neither);
  if (admitted_) context_.admission.leave();
}

// Scans long bodies on other threads, so that streams on this event loop are not delayed.
void Forwarding::begin(const std::shared_ptr<http::Exchange>& exchange) {
  context_.retries.earn();
  exchange->on_close([&loop = loop_, weak = weak_from_this()](http::CloseReason) {
    loop.post([weak] {
      if (const auto self = weak.lock()) self->client_disconnected();
    });
  });
  if (in_.body_bytes_max() < kReadHereMax) return on_read({}, in_.read());
  boost::asio::post(context_.readers, [&loop = loop_, self = shared_from_this()]() mutable {
    std::optional<http::Response> refusal;
    const auto memory = within_memory([&]() -> Result<> {
      refusal = self->in_.read();
      return {};
    });
    loop.post([self = std::move(self), memory, refusal = std::move(refusal)]() mutable {
      self->on_read(memory, std::move(refusal));
    });
  });
}

void Forwarding::on_read(const Result<>& memory, std::optional<http::Response> refusal) {
  if (is<Over>()) return;
  if (!memory) return refuse(503, memory.error().message);
  refusal ? answer(*std::move(refusal)) : admit();
}

void Forwarding::admit() {
  const http::Request& request = in_.request();
  const RouteRequest& route = in_.route();
  if (route.body.unreadable && has_json(request)) {
    const Error error{ErrorCode::invalid_argument, "the body is not valid JSON: " + route.body.error, ""};
    return answer(proxy_error(request.path, error));
  }
  if (!route.stored_id.empty()) owner_ = name_of(context_.stored.find(route.stored_id));
  if (!balancer_.knows(route.model)) in_.drop_tag();
  balancer_.knows(route.model) ? enter() : find_model();
}

// Refreshes the models, because a worker may have loaded the model since the last refresh.
void Forwarding::find_model() {
  context_.monitor.refresh_models([&loop = loop_, self = shared_from_this()] {
    loop.post([self] {
      if (self->is<Over>()) return;
      const bool named_by_path = self->in_.request().body.empty();
      if (named_by_path) self->in_.name_no_model();
      const std::string& model = self->in_.route().model;
      if (self->balancer_.knows(model)) return self->enter();
      self->refuse(404, fmt::format("The model `{}` does not exist.", model), "model");
    });
  });
}

void Forwarding::go() {
  state_ = Sent{};
  if (context_.options.retry.migration_limit > 0 && in_.route().stream && !in_.route().server_tools)
    body_ = client_body_ = back_.make_resumable();
  if (is_bootstrapped()) return begin_halves();
  if (auto body = prefill_request()) return prefill(std::move(body));
  if (follow_session()) return;
  if (!send()) no_worker();
}

ChoiceOptions Forwarding::choice_options(Role part) const {
  return {.part = part,
          .excluded = history_.tried,
          .rested = history_.refusal.has_value() || history_.prefill_is_busy,
          .computed = (prefill_cached_ || in_halves_) && part != Role::prefill,
          .worker = part == Role::prefill ? std::string_view() : owner_,
          .explain = in_.explains(),
          .draw = part == Role::decode ? draw_ : std::nullopt};
}

// Sends the request to the best worker that was not tried yet. Returns null if no such worker is available.
Forwarding::AttemptPointer Forwarding::send() {
  if (in_halves_ && !send_prefill_half()) return nullptr;
  const std::int64_t begun = now_us();
  const Role part = context_.options.pd.enabled ? Role::decode : Role::both;
  auto choice = balancer_.choose(in_.route(), choice_options(part));
  draw_.reset();
  context_.metrics.decided(static_cast<double>(now_us() - begun) * 1e-6);
  if (!choice) {
    if (prefill_half_) settle(*prefill_half_, Outcome::neither);  // no decode worker will fetch the blocks
    return nullptr;
  }
  ++history_.tries;
  const AttemptPointer attempt = open(*std::move(choice), body_ ? body_ : in_.body(), in_.left_ms());
  auto& attempts = std::get<Sent>(state_).attempts;
  attempts[attempts[0] && !attempts[0]->settled() ? 1 : 0] = attempt;
  if (const int ms = context_.options.retry.hedge_after_ms; ms > 0 && waits() && !in_halves_)
    loop_.after(ms, [weak = weak_from_this(), it = std::weak_ptr(attempt)] {
      const auto self = weak.lock();
      if (const auto sent = it.lock(); self && sent && !sent->settled()) self->hedge();
    });
  return attempt;
}

bool Forwarding::send_again() {
  history_.tried.clear();
  return send() != nullptr;
}

Forwarding::AttemptPointer Forwarding::open(Choice choice, std::shared_ptr<const std::string> body,
                                            int timeout_ms) {
  history_.tried.push_back(choice.booking.endpoint);
  http::CallRequest call =
      in_.call_request(*choice.endpoint, std::move(body), timeout_ms, history_.sent++ > 0);
  std::string cost_id = batches::random_hex();
  call.headers.set(std::string(kCostIdHeader), cost_id);
  const RequestTrace::Call span = trace_.begin(call.headers);
  const auto self = shared_from_this();
  AttemptPointer opened = Attempt::open(
      context_, loop_, std::move(choice), std::move(call),
      {.body = [self](Attempt& attempt, std::string_view piece) { self->on_body(attempt, piece); },
       .end = [self](Attempt& attempt, const Result<>& result) { self->on_end(attempt, result); },
       .ready = [self] { return !self->back_.is_full(); },
       .trouble =
           [weak = weak_from_this()](Attempt& attempt, Trouble trouble) {
             if (const auto it = weak.lock()) it->on_trouble(attempt, trouble);
           }},
      blind_wait());
  opened->span = span;
  opened->cost_id = std::move(cost_id);
  return opened;
}

// Returns the time in ms without a byte after which the request counts as lost, if the worker reports no
// load. It is longer if the answer is not streamed, because then all tokens are computed before the first
// byte.
int Forwarding::blind_wait() const {
  constexpr int kTokenMs = 30, kTokens = 2'000, kTokensMax = 1'000'000;
  const int ms = blind_wait_ms(context_.options.blind_wait_ms, in_.request().body.size());
  if (in_.route().stream || is<Prefilling>()) return ms;
  const int tokens = in_.route().output_tokens_max;
  return ms + kTokenMs * (tokens > 0 ? std::min(tokens, kTokensMax) : kTokens);
}

// Hedging: sends the request also to a second worker. The response that begins first is used.
void Forwarding::hedge() {
  if (!waits() || in_halves_ || under_way().size() != 1 || !context_.retries.take(now_us())) return;
  const AttemptPointer second = send();
  if (!second) return;
  second->hedges = true;
  --history_.tries;
}

std::vector<Forwarding::AttemptPointer> Forwarding::under_way() const {
  std::vector<AttemptPointer> open;
  const auto add = [&](const AttemptPointer& attempt) {
    if (attempt && !attempt->settled()) open.push_back(attempt);
  };
  if (const auto* sent = std::get_if<Sent>(&state_)) std::ranges::for_each(sent->attempts, add);
  if (const auto* prefilling = std::get_if<Prefilling>(&state_)) add(prefilling->attempt);
  if (const auto* answering = std::get_if<Answering>(&state_)) add(answering->attempt);
  return open;
}

void Forwarding::settle(Attempt& attempt, Outcome outcome) {
  if (attempt.settled()) return;
  attempt.settle(outcome);
  read_unread_cost(attempt, outcome == Outcome::success);
  trace_.end(attempt.span, attempt.worker().role == Role::prefill ? "prefill" : "answer",
             attempt.worker().url, attempt.answer.status);
  if (attempt.hedges) context_.metrics.hedged(is<Answering>());
}

void Forwarding::drop_attempts(Outcome outcome) {
  for (const AttemptPointer& attempt : under_way()) settle(*attempt, outcome);
}

void Forwarding::on_body(Attempt& attempt, std::string_view piece) {
  if (is<Prefilling>() || &attempt == prefill_half_.get()) return attempt.gather(piece, kGatheredBytesMax);
  if (worth_a_retry(attempt.answer.status)) return attempt.gather(piece, kRefusalBytesMax);
  if (!is<Answering>() && !lead(attempt)) return;
  if (back_.begun()) return send_back(attempt, piece);
  attempt.answer.body += piece;
  balancer_.grow(attempt.choice.booking, 0);
  if (is_stream(attempt.answer) || attempt.answer.body.size() >= kGatheredBytesMax) start_stream(attempt);
}

void Forwarding::on_end(Attempt& attempt, const Result<>& result) {
  if (&attempt == prefill_half_.get()) return on_prefill_half(attempt, result);
  if (is<Prefilling>()) return on_prefilled(attempt, result);
  if (!result) return back_.is_complete() ? finish() : on_lost(attempt, result.error());
  if (worth_a_retry(attempt.answer.status)) return on_refused(attempt);
  if (may_be_elsewhere(attempt)) return look_elsewhere(attempt);
  if (!is<Answering>() && !lead(attempt)) return;
  on_whole(attempt);
}

// Returns whether another worker may have what this worker does not have: a stored response, or the model,
// if this worker has restarted with another one since its models were read.
bool Forwarding::may_be_elsewhere(const Attempt& attempt) const {
  if (attempt.answer.status != 404 || back_.begun() || in_halves_) return false;
  if (!in_.route().stored_id.empty()) return owner_.empty();
  return history_.tries < context_.options.retry.attempts_max &&
         lacks_model(attempt.answer.body, in_.route().model);
}

void Forwarding::look_elsewhere(Attempt& attempt) {
  attempt.reports_cost |= cost_.take_head(attempt.answer);
  history_.refusal = for_client(attempt, std::move(attempt.answer));
  settle(attempt, Outcome::success);
  if (is<Answering>()) state_ = Sent{};
  if (in_.route().stored_id.empty()) context_.monitor.refresh_models([] {});
  if (under_way().empty() && !send()) give_up("no other replica has what the request names");
}

void Forwarding::on_whole(Attempt& attempt) {
  if (is_event_stream(attempt.answer) && !back_.begun()) start_stream(attempt);
  if (back_.begun()) {
    const RequestCost::StreamEnd end = cost_.end_stream();
    attempt.reports_cost |= end.reported;
    if (const std::string last = attempt.events.rest() + end.last_line; !last.empty()) back_.write(last);
    if (!back_.end_events())
      return on_lost(attempt, {ErrorCode::io, "the answer itself reports an error", ""});
    check_usage(attempt);
    settle(attempt, Outcome::success);
    blame_suspects(200);
    return finish();
  }
  context_.metrics.first_byte(attempt.first_byte_s);
  attempt.reports_cost |= cost_.take_head(attempt.answer);
  blame_suspects(attempt.answer.status);
  note_usage(attempt, attempt.answer.body);
  check_usage(attempt);
  http::Response whole = for_client(attempt, std::move(attempt.answer));
  if (whole.status / 100 == 2) context_.stored.learn(created(whole.body), attempt.choice.endpoint);
  settle(attempt, Outcome::success);
  answer(std::move(whole));
}

void Forwarding::on_trouble(Attempt& attempt, Trouble trouble) {
  // While a server runs the request's tools, its engine is idle. So an idle engine does not mean that the
  // request is lost.
  const bool idle = trouble == Trouble::forgotten || trouble == Trouble::stalled;
  if (idle && in_.route().server_tools && !is<Prefilling>()) return;
  if (&attempt == prefill_half_.get()) {
    // SGLang's metrics do not count a prompt that waits for its decode worker. So an idle prefill worker
    // may still have the prompt.
    if (idle) return;
    return on_prefill_half(attempt, failure(ErrorCode::io, "{}", text_of(trouble)));
  }
  if (trouble == Trouble::forgotten && !is<Prefilling>()) {
    if (is<Answering>()) return;
    attempt.forgotten = true;
    if (!in_.route().tokens.empty()) hedge();
    return;
  }
  // If the client does not read, the worker's data may wait in the connection.
  if (trouble == Trouble::stalled && back_.is_full()) return;
  attempt.forgotten = trouble == Trouble::forgotten;
  on_lost(attempt, {ErrorCode::io, fmt::format("{} {}", attempt.worker().url, text_of(trouble)), ""});
}

// Called for the first bytes of a response that is not a refusal. The attempt becomes the only one. Returns
// false if the response cannot continue the client's stream.
bool Forwarding::lead(Attempt& attempt) {
  if (back_.begun() && !back_.continued_by(attempt.answer)) {
    settle(attempt, Outcome::neither);
    if (!migrate()) break_off();  // the next worker may support resume_token_ids
    return false;
  }
  AttemptPointer leader;
  for (const AttemptPointer& each : under_way()) {
    if (each.get() == &attempt)
      leader = each;
    else
      settle(*each, each->forgotten ? Outcome::failure : Outcome::neither);
  }
  state_ = Answering{std::move(leader)};
  // The worker computed no prompt for an error response, so the time does not show the worker's speed.
  if (attempt.answer.status / 100 != 2) attempt.choice.booking.progress.prompt_tokens = 0;
  note_session(attempt);
  balancer_.first_token(attempt.choice.booking);
  if (!back_.begun()) {
    attempt.first_byte_s = in_.seconds();
    return true;
  }
  context_.metrics.migrated(true);
  context_.stored.learn(created(fmt::format(R"("id":"{}")", back_.id())), attempt.choice.endpoint);
  return true;
}

// If a worker has succeeded, the request did not cause the earlier failures. So they count against the
// workers that failed.
void Forwarding::blame_suspects(int status) {
  for (const auto& suspect : std::exchange(history_.suspects, {}))
    if (status < 400) balancer_.failed(*suspect);
}

void Forwarding::on_refused(Attempt& attempt) {
  attempt.reports_cost |= cost_.take_head(attempt.answer);
  const int status = attempt.answer.status;
  const bool own = in_.past_own_deadline() || is_the_requests_own(attempt.answer.body);
  const auto pause_s = retry_after_s(attempt.answer);
  const auto worker = attempt.choice.endpoint;
  history_.refusal = for_client(attempt, std::move(attempt.answer));
  if (is_backpressure(status) && context_.queue && !own) balancer_.refused(attempt.choice.booking, pause_s);
  settle(attempt, Outcome::neither);
  if (own) {
    drop_attempts(Outcome::neither);
    return give_up("the request itself");
  }
  if (is_backpressure(status) && context_.queue) {
    if (under_way().empty() && waits()) return wait_again();
  } else if (is_backpressure(status)) {
    if (pause_s) balancer_.pause(*worker, *pause_s);
  } else {
    context_.metrics.worker_failed(worker->url);
    history_.suspects.push_back(worker);
  }
  if (!under_way().empty()) return;
  const std::string reason = fmt::format("status {}", status);
  context_.retries.take(now_us()) ? retry(reason) : give_up(reason);
}

void Forwarding::on_lost(Attempt& attempt, const Error& error) {
  if (is<Prefilling>()) return on_prefilled(attempt, std::unexpected(error));
  const auto worker = attempt.choice.endpoint;
  const bool late = in_.left_ms() == 0;
  // A refused connection or a timeout is the worker's failure. If a connection breaks later, the request may
  // be the cause.
  const bool unreachable = error.code == ErrorCode::unavailable;
  const bool silent = late && !is<Answering>() && !in_.past_own_deadline();
  const bool cut = back_.begun() && !late;
  context_.metrics.worker_failed(worker->url);
  if (is<Answering>()) attempt.reports_cost |= cost_.end_stream().reported;
  settle(attempt, unreachable || silent ? Outcome::failure : Outcome::neither);
  if (is<Answering>()) state_ = Sent{};
  if (!unreachable && !silent && !cut) history_.suspects.push_back(worker);
  if (!under_way().empty()) return;
  if (late) return refuse_late();
  if (cut) {
    log_warning("the stream of {} ended early: {}", in_.request().path, error.message);
    if (migrate()) return history_.suspects.push_back(worker);
    balancer_.failed(*worker);
    return break_off();
  }
  // No worker has received the request, so the request waits until a worker is available.
  if (unreachable && context_.queue && waits()) {
    if (!send()) return wait_again();
    return context_.metrics.retried();
  }
  // A worker that crashes or hangs loses many requests at once, so the first retry of each request needs no
  // budget. Further retries do.
  const bool free = unreachable || ++history_.losses == 1;
  free || context_.retries.take(now_us()) ? retry(error.message) : give_up(error.message);
}

// Sends the request to a worker that was not tried yet. If all were tried, gives up if the refusal has
// Retry-After, and otherwise tries all workers again after a backoff.
void Forwarding::retry(const std::string& reason) {
  if (history_.tries >= context_.options.retry.attempts_max) return give_up(reason);
  log_info("retrying after a failure of {}: {}", history_.tries, reason);
  if (send()) return context_.metrics.retried();
  if (history_.refusal && retry_after_s(*history_.refusal).value_or(0) > 0) return give_up(reason);
  retry_later(reason);
}

void Forwarding::retry_later(const std::string& reason) {
  const RetryOptions& options = context_.options.retry;
  const double unit = static_cast<double>(balancer_.draw() >> 11) * 0x1p-53;
  const double backoff =
      std::min<double>(options.initial_backoff_ms * std::pow(options.backoff_multiplier, history_.tries - 1),
                       options.max_backoff_ms);
  const double ms = backoff * (1 + options.jitter * (2 * unit - 1));
  loop_.after(static_cast<int>(ms), [self = shared_from_this(), reason] {
    if (self->is<Over>()) return;
    self->send_again() ? self->context_.metrics.retried() : self->give_up(reason);
  });
}

// Prefers the last error response of a worker, because it says more than an error of the router.
void Forwarding::give_up(const std::string& reason) {
  if (history_.tries > 1) context_.metrics.retries_exhausted();
  if (back_.begun()) return break_off();
  if (history_.refusal) return answer(*std::move(history_.refusal));
  const std::string message = fmt::format("no replica could answer the request; last reason: {}", reason);
  history_.tries >= context_.options.retry.attempts_max ? refuse(502, message) : refuse_for_now(503, message);
}

// Continues the stream at another worker. Returns false if no worker can continue it.
bool Forwarding::migrate() {
  if (const auto rest = back_.rest()) {
    back_.write_rest(*rest);
    finish();
    return true;
  }
  auto body = in_.past_own_deadline() ? nullptr : back_.migrate(context_.options.retry.migration_limit);
  if (!body) return false;
  (in_halves_ ? client_body_ : body_) = std::move(body);
  history_.tries = 0;
  history_.refusal.reset();
  return send() || send_again();
}

}  // namespace octavo::fleet
