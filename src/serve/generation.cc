#include "serve/generation.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <ranges>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "openai/errors.h"

namespace octavo {

using openai::AnswerPart;

namespace {

// Returns the last prompt tokens. The detokenizer needs them to decide whether the first word of the answer
// has a leading space.
std::span<const TokenId> tail_of(const std::vector<TokenId>& ids) {
  constexpr std::size_t kTokens = 16;
  return std::span(ids).last(std::min(ids.size(), kTokens));
}

// Returns the special tokens that mark tool calls, which must stay in the text for the tool parser.
std::span<const TokenId> kept_special(const Service& service, const openai::GenerationRequest& request) {
  return request.tools.dialect ? std::span(service.options.tool_tokens) : std::span<const TokenId>();
}

// If more bytes than this wait for a client to read them, the server closes the connection.
constexpr std::size_t kUnreadBytesMax = std::size_t{16} << 20;
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

std::size_t bytes_of(const Output& output) {
  std::size_t bytes = sizeof(output) + output.token_ids.size() * sizeof(TokenId);
  for (const auto* logprobs : {&output.logprobs, &output.prompt_logprobs})
    for (const auto& row : *logprobs) bytes += sizeof(row) + row.top.size() * sizeof(row.top.front());
  return bytes;
}

std::int64_t logprobs_bytes(std::span<const TokenLogprobs> logprobs) {
  std::int64_t entries = 0;
  for (const TokenLogprobs& row : logprobs) entries += 1 + std::ssize(row.top);
  return entries * kLogprobBytes;
}

double seconds(std::int64_t us) { return static_cast<double>(us) * 1e-6; }

// Returns the prompt's log-probabilities in OpenAI's format, in which the first token has none (rank 0).
std::vector<TokenLogprobs> with_first_token(const openai::EchoedPrompt& prompt) {
  std::vector<TokenLogprobs> all;
  if (!prompt.token_ids.empty()) all.emplace_back().id = prompt.token_ids.front();
  std::ranges::copy(prompt.logprobs, std::back_inserter(all));
  return all;
}

}  // namespace

Generation::Generation(std::shared_ptr<Service> service, GenerationPlan plan, Admission::Ticket ticket,
                       std::shared_ptr<http::Exchange> exchange)
    : service_(std::move(service)),
      plan_(std::move(plan)),
      ticket_(std::move(ticket)),
      submission_(service_->engine),
      exchange_(std::move(exchange)),
      unfinished_runs_(plan_.prompts.size()),
      written_us_(now_us()) {
  const int n = plan_.request.sampling.n;
  if (streaming() && plan_.request.stream.include_progress)
    progress_ = std::make_unique<PromptProgress>(plan_);
  for (std::size_t i = 0; i < plan_.prompts.size(); ++i) {
    Run& run = runs_.emplace_back();
    run.unfinished = n;
    run.echoed.tokens = plan_.prompt_tokens(i);
    if (shows_prompt_ids()) run.echoed.token_ids = plan_.prompts[i];
    for (int c = 0; c < n; ++c)
      run.choices.push_back({.processor = openai::OutputProcessor(service_->tokenizer, plan_.request.sampling,
                                                                  service_->options.eos_ids, plan_.stops,
                                                                  tail_of(plan_.prompts[i]), plan_.thinking,
                                                                  kept_special(*service_, plan_.request)),
                             .kept = {.index = static_cast<int>(i) * n + c}});
  }
}

Generation::~Generation() { service_->generations.remove(this); }

bool Generation::shows_prompt_ids() const {
  if (!plan_.sources.empty() && plan_.sources[0].embeds) return false;
  const bool echoes = !plan_.echo_texts.empty() && plan_.request.sampling.logprobs.output;
  return plan_.request.report.token_ids || echoes;
}

std::weak_ptr<Generation> Generation::start(std::shared_ptr<Service> service, GenerationPlan plan,
                                            std::shared_ptr<http::Exchange> exchange) {
  auto ticket = admit(service->admission, service->metrics, plan.client, plan.price);
  if (!ticket) {
    (void)plan.reply->failed(ticket.error());
    http::Response refusal = plan.error_response(ticket.error());
    refusal.headers.set("Retry-After", std::to_string(service->admission.retry_after_s(plan.price)));
    if (exchange) exchange->respond(std::move(refusal));
    return {};
  }
  const std::shared_ptr<Generation> self(
      new Generation(std::move(service), std::move(plan), *std::move(ticket), std::move(exchange)));
  self->service_->generations.add(self);
  if (self->exchange_)
    self->exchange_->on_close([weak = std::weak_ptr(self)](http::CloseReason) {
      if (const auto generation = weak.lock()) generation->cancel();
    });
  if (const auto submitted = within_memory([&] { return self->submit(); }); !submitted) {
    self->cancel();
    if (submitted.error().code == ErrorCode::resource_exhausted) self->service_->metrics.admission_rejected();
    (void)self->plan_.reply->failed(submitted.error());
    self->respond(self->plan_.error_response(submitted.error()));
    return {};
  }
  if (self->exchange_) self->exchange_->release_body();
  {
    const std::lock_guard lock(self->mutex_);
    self->started_ = true;
  }
  self->schedule();
  Deadlines& deadlines = self->service_->deadlines;
  if (self->plan_.ends_us() > 0) deadlines.add(self->plan_.ends_us(), self);
  if (const std::int64_t silence_us = self->service_->options.keep_alive_us;
      silence_us > 0 && self->streaming())
    deadlines.add(now_us() + silence_us, self);
  return self;
}

// Processes the tokens that the client already has, but does not send them. So text, reasoning and calls
// continue as in the broken stream. The log-probabilities of these tokens are placeholders: only their number
// and text positions matter.
Result<> Generation::resume() {
  if (!plan_.request.stream.resume) return {};
  Run& run = runs_.front();
  Choice& choice = run.choices.front();
  const auto first_ranked = [](TokenId id) { return TokenLogprobs{.id = id, .rank = 1, .top = {}}; };
  const bool logprobs = plan_.request.sampling.logprobs.output.has_value();
  for (const TokenId id : run.echoed.token_ids | std::views::drop(1))
    if (logprobs) run.echoed.logprobs.push_back(first_ranked(id));
  std::string sent;
  emit(run, choice, choice.processor.take({}), sent);
  for (const TokenId id : *plan_.request.stream.resume) {
    Output one;
    one.token_ids = {id};
    if (logprobs) one.logprobs.push_back(first_ranked(id));
    AnswerPart part = choice.processor.take(std::move(one));
    if (choice.processor.finished()) return invalid("resume_token_ids", "already contains a stop string");
    emit(run, choice, std::move(part), sent);
  }
  send_kept(choice, sent);
  plan_.reply->resumed();
  return {};
}

Result<> Generation::submit() {
  TRY_VOID(resume());
  for (std::size_t i = 0; i < plan_.prompts.size(); ++i) {
    if (plan_.request.beam.enabled) {
      TRY_VOID(search(i));
      continue;
    }
    TRY_VOID(submission_.submit(make_request(plan_, i, service_->options.eos_ids),
                                sink_of(shared_from_this(), i)));
  }
  return {};
}

Result<> Generation::search(std::size_t prompt) {
  TRY(const auto search,
      BeamSearch::start(service_, make_request(plan_, prompt, service_->options.eos_ids),
                        plan_.request.beam.length_penalty, sink_of(shared_from_this(), prompt)));
  submission_.add([weak = std::weak_ptr(search)] {
    if (const auto running = weak.lock()) running->cancel();
  });
  return {};
}

void Generation::deliver(std::size_t prompt, Output&& output) noexcept {
  bool overflows = false;
  {
    const std::lock_guard lock(mutex_);
    mail_bytes_ += bytes_of(output);
    overflows = streaming() && mail_bytes_ > kUnreadBytesMax;
    mail_.push_back({prompt, std::move(output), now_us(), service_->weights.version()});
  }
  if (overflows) {
    cancel();
    if (exchange_) exchange_->cut();
  }
  schedule();
}

void Generation::shut_down() { end_with({ErrorCode::unavailable, "the server is shutting down", ""}); }

void Generation::wake() {
  if (plan_.ends_us() > 0 && now_us() >= plan_.ends_us())
    return end_with({ErrorCode::unavailable,
                     fmt::format("the time limit of {} s is over", plan_.request.timeout_s), "timeout"});
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  schedule();
}

void Generation::end_with(Error error) {
  {
    const std::lock_guard lock(mutex_);
    ending_ = std::move(error);
  }
  schedule();
}

void Generation::schedule() {
  {
    const std::lock_guard lock(mutex_);
    if (!started_ || scheduled_ || !has_work()) return;
    scheduled_ = true;
  }
  service_->delivery.post([self = shared_from_this()] { self->drain(); });
}

// Sends a piece of output, then lets other generations run. If the client has not read enough of the earlier
// pieces, runs again later.
void Generation::drain() {
  const auto again = [self = shared_from_this()] {
    self->service_->delivery.post([self] { self->drain(); });
  };
  if (streaming() && exchange_->wait_writable(again)) return;
  std::string out;
  const bool concluded_before = concluded_;
  if (const auto error = end_reason()) fail(*error, out);
  const std::size_t piece = streaming() ? kPieceBytes : std::string::npos;
  while (out.size() < piece && (next_ < batch_.size() || fetch())) take(std::move(batch_[next_++]), out);
  keep_alive(out);
  if (streaming() && !out.empty()) {
    written_us_ = now_us();
    if (!exchange_->write(out)) cancel();
  }
  if (stream_open_ && concluded_ && !concluded_before) exchange_->finish();
  if (next_ < batch_.size() || !rest()) again();
}

bool Generation::fetch() {
  std::vector<Mail>().swap(batch_);
  next_ = 0;
  const std::lock_guard lock(mutex_);
  batch_.swap(mail_);
  mail_bytes_ = 0;
  return !batch_.empty();
}

// Returns whether the worker can stop because the queue is empty.
bool Generation::rest() {
  const std::lock_guard lock(mutex_);
  scheduled_ = has_work();
  return !scheduled_;
}

// If the generation must end early, returns the error (only once).
std::optional<Error> Generation::end_reason() {
  const std::lock_guard lock(mutex_);
  auto error = std::exchange(ending_, std::nullopt);
  return concluded_ ? std::nullopt : error;
}

// Adds a keep-alive if the stream has sent nothing for keep_alive_us, and requests the next wake().
void Generation::keep_alive(std::string& out) {
  {
    const std::lock_guard lock(mutex_);
    if (!std::exchange(woken_, false)) return;
  }
  const std::int64_t silence_us = service_->options.keep_alive_us;
  if (silence_us == 0 || concluded_ || !streaming()) return;
  const std::int64_t now = now_us();
  const bool silent = out.empty() && now - written_us_ >= silence_us;
  if (silent) {
    open_stream();
    out += plan_.reply->keep_alive(runs_.front().echoed);
  }
  service_->deadlines.add((silent ? now : written_us_) + silence_us, weak_from_this());
}

bool Generation::report_progress(const Mail& mail, std::string& out) {
  if (const auto progress = progress_->take(mail.prompt, mail.output, mail.at_us); progress && !concluded_) {
    open_stream();
    out += plan_.reply->progress(*progress);
  }
  return mail.output.token_ids.empty() && !mail.output.finished;
}

void Generation::take(Mail&& mail, std::string& out) {
  Run& run = runs_[mail.prompt];
  Choice& choice = run.choices[static_cast<std::size_t>(mail.output.index)];
  measure(run, choice, mail);
  if (progress_ && report_progress(mail, out)) return;
  const std::optional<FinishReason> ended = mail.output.finished;
  const std::optional<Error> error = mail.output.error;
  const RequestTimes times = mail.output.times;
  const int engine = mail.output.engine;
  choice.times = times;
  bool last = false;
  if (ended) ticket_.give_back_answer();  // before the client can react to the end with its next request
  if (!concluded_ && !choice.processor.finished()) {
    if (error)
      fail(*error, out);
    else if (const auto done = within_memory([&] { return advance(run, choice, std::move(mail), out); });
             !done)
      fail(done.error(), out);
    else
      last = *done;
  }
  const bool refused = error && error->code == ErrorCode::invalid_argument;
  choice.ended = ended.has_value();
  if (ended && !refused) record_end(engine, run, choice, *ended, times, mail.at_us);
  if (ended && all_ended()) {
    log_end(*ended, mail.at_us);
    plan_.account.cost_open.reset();
  }
  if (!last) return;
  // The answer is sent only after the metrics were updated, so they include every answer that a client has
  // received.
  const auto concluded = within_memory([&]() -> Result<> {
    conclude(out);
    return {};
  });
  if (!concluded) fail(concluded.error(), out);
}

// Called with the first output, not earlier, so that an error before it can still set the HTTP status.
void Generation::open_stream() {
  if (!streaming() || std::exchange(stream_open_, true)) return;
  http::Headers headers{{"Cache-Control", "no-cache"}};
  if (plan_.request.stream.resume)
    headers.add("X-Octavo-Resumed", std::to_string(plan_.request.stream.resume->size()));
  exchange_->start_stream(
      {.content_type = std::string(plan_.reply->stream_type()), .headers = std::move(headers)});
}

// Returns true if this output has completed the last answer.
Result<bool> Generation::advance(Run& run, Choice& choice, Mail&& mail, std::string& out) {
  open_stream();
  const bool ended = mail.output.finished.has_value();
  AnswerPart part = choice.processor.take(std::move(mail.output));
  part.index = choice.kept.index;
  part.note_weights(*mail.weights, choice.weights);
  if (!streaming() && !ticket_.grow(logprobs_bytes(part.logprobs)))
    return failure(ErrorCode::unavailable, "the server has no memory left for more log-probabilities");
  emit(run, choice, std::move(part), out);
  if (!choice.processor.finished() || --run.unfinished > 0) return false;
  // A stop string, which the engine does not know, has ended the answer. So the engine's request must be
  // cancelled.
  if (!ended) submission_.cancel(mail.prompt);
  return --unfinished_runs_ == 0;
}

void Generation::measure(Run& run, Choice& choice, Mail& mail) {
  Output& output = mail.output;
  run.cached_tokens = std::max(run.cached_tokens, output.cached_tokens);
  choice.preemptions = output.preemptions;
  if (output.finished || !output.token_ids.empty()) choice.cost = output.cost;
  if (!output.prompt_logprobs.empty()) run.echoed.logprobs = std::move(output.prompt_logprobs);
  if (output.token_ids.empty()) return;
  if (choice.last_output_us == 0)
    service_->metrics.first_token(output.engine, seconds(mail.at_us - plan_.arrived_us));
  else
    service_->metrics.token_gap(output.engine, seconds(mail.at_us - choice.last_output_us));
  choice.last_output_us = mail.at_us;
}

void Generation::emit(Run& run, Choice& choice, AnswerPart&& part, std::string& out) {
  if (plan_.prompt_only) part.text.clear(), part.token_ids.clear(), part.logprobs.clear();
  const bool first = !choice.opened;
  choice.opened = true;
  if (first) add_echo(run, static_cast<std::size_t>(part.index / plan_.request.sampling.n), part);
  choice.reported = part.finish;
  if (streaming() && first) {
    openai::Usage before = usage();
    before.completion_tokens = 0;
    const bool shown = plan_.request.stream.continuous_usage || plan_.reply->shows_cached_tokens();
    out += plan_.reply->open(part.index, run.echoed, shown ? &before : nullptr);
  }
  const bool ends = part.finish.has_value();
  choice.kept.append(std::move(part));
  const int interval = std::max(plan_.request.stream.interval, service_->options.rules.stream_interval);
  const bool due = choice.sent_tokens == 0 || choice.processor.tokens() - choice.sent_tokens >= interval;
  if (streaming() && (ends || due)) send_kept(choice, out);
}

void Generation::send_kept(Choice& choice, std::string& out) {
  choice.sent_tokens = choice.processor.tokens();
  const AnswerPart part = std::exchange(choice.kept, AnswerPart{.index = choice.kept.index});
  const bool has_content = !part.text.empty() || !part.reasoning.empty() || part.finish ||
                           !part.logprobs.empty() ||
                           (plan_.request.report.token_ids && !part.token_ids.empty());
  if (!has_content) return;
  const openai::Usage so_far = plan_.request.stream.continuous_usage ? usage() : openai::Usage{};
  out += plan_.reply->part(part, plan_.request.stream.continuous_usage ? &so_far : nullptr);
}

void Generation::add_echo(const Run& run, std::size_t prompt, AnswerPart& part) const {
  if (plan_.echo_texts.empty()) return;
  part.text.insert(0, plan_.echo_texts[prompt]);
  if (!plan_.request.sampling.logprobs.output) return;
  std::vector<TokenLogprobs> all = with_first_token(run.echoed);
  std::ranges::move(part.logprobs, std::back_inserter(all));
  part.logprobs = std::move(all);
}

void Generation::conclude(std::string& out) {
  concluded_ = true;
  if (streaming()) {
    out += plan_.reply->close(usage());
    add_cost_comment(out);
    return;
  }
  std::vector<AnswerPart> parts;
  std::vector<openai::EchoedPrompt> prompts;
  for (Run& run : runs_) {
    prompts.push_back(std::move(run.echoed));
    for (Choice& choice : run.choices) parts.push_back(std::move(choice.kept));
  }
  const openai::Usage total = usage();
  http::Response response{.content_type = std::string(plan_.reply->content_type()),
                          .body = plan_.reply->whole(parts, prompts, total)};
  if (total.times) response.headers.add("Server-Timing", openai::server_timing(*total.times));
  add_cost_header(response);
  respond(std::move(response));
}

void Generation::fail(const Error& error, std::string& out) {
  concluded_ = true;
  cancel();
  if (error.code == ErrorCode::internal) log_error("request failed: {}", error.message);
  if (stream_open_)
    for (Run& run : runs_)
      for (Choice& choice : run.choices)
        if (choice.opened) send_kept(choice, out);
  const std::string events = plan_.reply->failed(error);
  if (!stream_open_) {
    http::Response response = plan_.error_response(error);
    add_cost_header(response);
    return respond(std::move(response));
  }
  out += events;
  add_cost_comment(out);
}

void Generation::respond(http::Response response) {
  if (exchange_) exchange_->respond(std::move(response));
}

openai::Usage Generation::usage() const {
  openai::Usage usage;
  std::int64_t cached = 0;
  for (const Run& run : runs_) {
    usage.prompt_tokens += run.echoed.tokens;
    cached += run.cached_tokens;
    if (plan_.prompt_only) continue;
    for (const Choice& choice : run.choices) {
      usage.completion_tokens += choice.processor.tokens();
      if (plan_.thinking)
        usage.reasoning_tokens = usage.reasoning_tokens.value_or(0) + choice.processor.reasoning_tokens();
    }
  }
  const bool session = plan_.request.session.has_value();
  if (session || service_->options.features.prompt_tokens_details || plan_.reply->shows_cached_tokens())
    usage.cached_tokens = cached;
  // A session only holds full blocks of tokens.
  const int block = std::max(1, service_->engine_info.block_size);
  if (session) usage.stored_tokens = std::max<std::int64_t>(0, usage.prompt_tokens / block * block - cached);
  const bool single = runs_.size() == 1 && runs_.front().choices.size() == 1;
  const bool shown = service_->options.features.request_metrics || plan_.reply->shows_times();
  if (shown && single) usage.times = runs_.front().choices.front().times;
  if (plan_.request.report.cost) {
    usage.cost = cost();
    usage.prices = service_->metrics.accounts.prices();
  }
  return usage;
}

}  // namespace octavo
