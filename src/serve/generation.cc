#include "serve/generation.h"

#include <algorithm>
#include <iterator>

#include "base/clock.h"
#include "base/hash.h"
#include "base/log.h"
#include "http/sse.h"
#include "serve/openai/errors.h"

namespace octavo {

using openai::AnswerPart;

namespace {

constexpr std::size_t kPromptTail = 16;  // tokens that settle how an answer's first word is written

std::span<const TokenId> tail_of(const std::vector<TokenId>& ids) {
  return std::span(ids).last(std::min(ids.size(), kPromptTail));
}

Hash128 salt_hash(const std::string& salt) {
  if (salt.empty()) return {};
  return hash_bytes(HashAlgorithm::sha256, std::as_bytes(std::span(salt)), 0);
}

// Special tokens that tool calls are found by.
std::span<const TokenId> kept_special(const Service& service, const openai::GenerationRequest& request) {
  if (!request.tools.dialect) return {};
  return service.options.tool_tokens;
}

double seconds(std::int64_t us) { return static_cast<double>(us) * 1e-6; }

// OpenAI's shape for positions of the prompt: the first token has no probability (rank 0).
std::vector<TokenLogprobs> with_first_token(const openai::EchoedPrompt& prompt) {
  std::vector<TokenLogprobs> all;
  if (!prompt.token_ids.empty()) all.emplace_back().id = prompt.token_ids.front();
  std::ranges::copy(prompt.logprobs, std::back_inserter(all));
  return all;
}

}  // namespace

class Generation::Sink final : public OutputSink {
 public:
  Sink(std::shared_ptr<Generation> generation, std::size_t prompt)
      : generation_(std::move(generation)), prompt_(prompt) {}
  void deliver(Output&& output) noexcept override {
    generation_->deliver({prompt_, std::move(output), now_us()});
  }

 private:
  std::shared_ptr<Generation> generation_;
  std::size_t prompt_;
};

Generation::Generation(std::shared_ptr<Service> service, GenerationPlan plan,
                       std::shared_ptr<http::Exchange> exchange)
    : service_(std::move(service)),
      plan_(std::move(plan)),
      exchange_(std::move(exchange)),
      unfinished_runs_(plan_.prompts.size()) {
  ++service_->generations;
  const int n = plan_.request.sampling.n;
  for (std::size_t i = 0; i < plan_.prompts.size(); ++i) {
    Run& run = runs_.emplace_back();
    run.unfinished = n;
    run.prompt_tokens = static_cast<int>(plan_.prompts[i].size());
    if (shows_prompt_ids()) run.echoed.token_ids = plan_.prompts[i];
    for (int c = 0; c < n; ++c)
      run.choices.push_back(
          {.answer = openai::Answer(service_->tokenizer, plan_.request.sampling, service_->options.eos_ids,
                                    plan_.stops, tail_of(plan_.prompts[i]), plan_.thinking,
                                    kept_special(*service_, plan_.request)),
           .whole = {.index = static_cast<int>(i) * n + c}});
  }
}

Generation::~Generation() { --service_->generations; }

bool Generation::shows_prompt_ids() const {
  const openai::GenerationRequest& asked = plan_.request;
  return asked.return_token_ids || (!plan_.echo_texts.empty() && asked.sampling.logprobs);
}

void Generation::start(std::shared_ptr<Service> service, GenerationPlan plan,
                       std::shared_ptr<http::Exchange> exchange) {
  const std::shared_ptr<Generation> self(
      new Generation(std::move(service), std::move(plan), std::move(exchange)));
  self->exchange_->on_close([weak = std::weak_ptr(self)](http::CloseReason) {
    if (const auto generation = weak.lock()) generation->cancel();
  });
  if (const auto submitted = self->submit(); !submitted) {
    self->cancel();
    if (submitted.error().code == ErrorCode::resource_exhausted) self->service_->metrics.admission_rejected();
    return self->exchange_->respond(openai::error_response(submitted.error()));
  }
  if (self->streaming())
    self->exchange_->start_stream(
        {.content_type = "text/event-stream; charset=utf-8", .headers = {{"Cache-Control", "no-cache"}}});
  const std::lock_guard lock(self->mutex_);
  self->started_ = true;
  if (self->mail_.empty()) return;
  self->scheduled_ = true;
  self->service_->delivery.post([self] { self->drain(); });
}

Result<> Generation::submit() {
  const openai::GenerationRequest& asked = plan_.request;
  for (std::size_t i = 0; i < plan_.prompts.size(); ++i) {
    Request request{.name = asked.request_id,
                    .prompt = std::move(plan_.prompts[i]),
                    .sampling = asked.sampling,
                    .eos_ids = service_->options.eos_ids,
                    .priority = asked.priority,
                    .cache_salt = salt_hash(asked.cache_salt),
                    .read_prefix_cache = !asked.sampling.prompt_logprobs,
                    .grammar = plan_.grammar,
                    .grammar_after = plan_.grammar_after()};
    TRY(const RequestId id,
        service_->engine.submit(std::move(request), std::make_shared<Sink>(shared_from_this(), i)));
    bool cancelled = false;
    {
      const std::lock_guard lock(mutex_);
      ids_.push_back(id);
      cancelled = cancelled_;
    }
    if (cancelled) service_->engine.abort(id);
  }
  return {};
}

void Generation::cancel() noexcept {
  std::vector<RequestId> ids;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
    ids = ids_;
  }
  for (const RequestId id : ids) service_->engine.abort(id);
}

void Generation::deliver(Mail&& mail) noexcept {
  {
    const std::lock_guard lock(mutex_);
    mail_.push_back(std::move(mail));
    if (!started_ || scheduled_) return;
    scheduled_ = true;
  }
  service_->delivery.post([self = shared_from_this()] { self->drain(); });
}

void Generation::drain() {
  std::vector<Mail> batch;
  for (;;) {
    batch.clear();
    {
      const std::lock_guard lock(mutex_);
      if (mail_.empty()) {
        scheduled_ = false;
        return;
      }
      batch.swap(mail_);
    }
    std::string out;
    bool finish = false;
    for (Mail& mail : batch) {
      const bool before = concluded_;
      take(std::move(mail), out);
      finish = finish || before != concluded_;
    }
    if (streaming() && !out.empty() && !exchange_->write(out)) cancel();
    if (streaming() && finish) exchange_->finish();
  }
}

void Generation::take(Mail&& mail, std::string& out) {
  Run& run = runs_[mail.prompt];
  Choice& choice = run.choices[static_cast<std::size_t>(mail.output.index)];
  measure(run, choice, mail);
  const std::optional<FinishReason> ended = mail.output.finished;
  const RequestTimes times = mail.output.times;
  if (!concluded_ && !choice.answer.finished()) {
    if (ended == FinishReason::error)
      fail(mail.output.error, out);
    else
      advance(run, choice, std::move(mail), out);
  }
  if (ended) record_end(run, choice, *ended, times, mail.at_us);
}

void Generation::advance(Run& run, Choice& choice, Mail&& mail, std::string& out) {
  const bool ended = mail.output.finished.has_value();
  AnswerPart part = choice.answer.take(std::move(mail.output));
  part.index = choice.whole.index;
  emit(run, choice, std::move(part), out);
  if (!choice.answer.finished() || --run.unfinished > 0) return;
  // Stop strings are found here, so the engine must be told.
  if (!ended) service_->engine.abort(ids_[mail.prompt]);
  if (--unfinished_runs_ == 0) conclude(out);
}

void Generation::measure(Run& run, Choice& choice, const Mail& mail) {
  const Output& output = mail.output;
  run.cached_tokens = std::max(run.cached_tokens, output.cached_tokens);
  if (!output.prompt_logprobs.empty()) run.echoed.logprobs = output.prompt_logprobs;
  if (output.token_ids.empty()) return;
  if (choice.last_output_us == 0)
    service_->metrics.first_token(seconds(mail.at_us - plan_.arrived_us));
  else
    service_->metrics.token_gap(seconds(mail.at_us - choice.last_output_us));
  choice.last_output_us = mail.at_us;
}

void Generation::record_end(const Run& run, const Choice& choice, FinishReason reason,
                            const RequestTimes& times, std::int64_t at_us) {
  const SamplingParams& sampling = plan_.request.sampling;
  // An answer that a stop string ended is aborted in the engine; what counts is what the client was told.
  reason = choice.told.value_or(reason);
  service_->metrics.answer_ended({.reason = reason,
                                  .prompt_tokens = run.prompt_tokens,
                                  .cached_tokens = run.cached_tokens,
                                  .generation_tokens = choice.answer.tokens(),
                                  .max_tokens = sampling.max_tokens.value_or(0),
                                  .n = sampling.n,
                                  .times = times,
                                  .finished_us = at_us});
}

void Generation::emit(Run& run, Choice& choice, AnswerPart&& part, std::string& out) {
  if (plan_.prompt_only) part.text.clear(), part.token_ids.clear(), part.logprobs.clear();
  const bool first = !choice.opened;
  choice.opened = true;
  if (first) add_echo(run, static_cast<std::size_t>(part.index / plan_.request.sampling.n), part);
  choice.told = part.finish;
  if (!streaming()) return choice.whole.append(std::move(part));

  const bool with_usage = plan_.request.continuous_usage;
  const openai::Usage so_far = with_usage ? usage() : openai::Usage{};
  const openai::Usage* shown = with_usage ? &so_far : nullptr;
  const std::string opening = first ? plan_.reply->opening_chunk(part.index, shown) : "";
  if (!opening.empty()) out += http::sse_event(opening);
  const bool has_content = !part.text.empty() || !part.reasoning.empty() || part.finish ||
                           !part.logprobs.empty() ||
                           (plan_.request.return_token_ids && !part.token_ids.empty());
  if (!has_content) return;
  if (const std::string chunk = plan_.reply->chunk(part, shown); !chunk.empty())
    out += http::sse_event(chunk);
}

void Generation::add_echo(const Run& run, std::size_t prompt, AnswerPart& part) const {
  if (plan_.echo_texts.empty()) return;
  part.text.insert(0, plan_.echo_texts[prompt]);
  if (!plan_.request.sampling.logprobs) return;
  std::vector<TokenLogprobs> all = with_first_token(run.echoed);
  std::ranges::move(part.logprobs, std::back_inserter(all));
  part.logprobs = std::move(all);
}

void Generation::conclude(std::string& out) {
  concluded_ = true;
  if (streaming()) {
    if (plan_.request.include_usage) out += http::sse_event(plan_.reply->usage_chunk(usage()));
    out += http::sse_event("[DONE]");
    return;
  }
  std::vector<AnswerPart> parts;
  std::vector<openai::EchoedPrompt> prompts;
  for (Run& run : runs_) {
    prompts.push_back(std::move(run.echoed));
    for (Choice& choice : run.choices) parts.push_back(std::move(choice.whole));
  }
  exchange_->respond({.body = plan_.reply->whole(parts, prompts, usage())});
}

void Generation::fail(const std::string& message, std::string& out) {
  concluded_ = true;
  cancel();
  const Error error{ErrorCode::internal, message.empty() ? "the engine could not go on" : message, ""};
  log_error("request failed: {}", error.message);
  if (!streaming()) return exchange_->respond(openai::error_response(error));
  out += http::sse_event(openai::error_json(error));
  out += http::sse_event("[DONE]");
}

openai::Usage Generation::usage() const {
  openai::Usage usage;
  std::int64_t cached = 0;
  for (const Run& run : runs_) {
    usage.prompt_tokens += run.prompt_tokens;
    cached += run.cached_tokens;
    if (plan_.prompt_only) continue;
    for (const Choice& choice : run.choices) {
      usage.completion_tokens += choice.answer.tokens();
      if (plan_.thinking)
        usage.reasoning_tokens = usage.reasoning_tokens.value_or(0) + choice.answer.reasoning_tokens();
    }
  }
  if (service_->options.prompt_tokens_details) usage.cached_tokens = cached;
  return usage;
}

}  // namespace octavo
