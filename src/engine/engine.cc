#include "engine/engine.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/random.h"

namespace octavo {

Result<std::unique_ptr<Engine>> Engine::start(SchedulerOptions options, EngineLimits limits,
                                              std::unique_ptr<Executor> executor,
                                              std::unique_ptr<Proposer> proposer) {
  options.max_sequences = limits.max_unfinished;
  options.max_num_seqs = std::min(options.max_num_seqs, limits.max_unfinished);
  options.max_steps_in_flight = executor->asynchronous() ? 2 : 1;
  TRY(auto scheduler, Scheduler::create(std::move(options)));
  return std::unique_ptr<Engine>(
      new Engine(std::move(scheduler), limits, std::move(executor), std::move(proposer)));
}

Engine::Engine(std::unique_ptr<Scheduler> scheduler, EngineLimits limits, std::unique_ptr<Executor> executor,
               std::unique_ptr<Proposer> proposer)
    : limits_(limits),
      executor_(std::move(executor)),
      proposer_(std::move(proposer)),
      scheduler_(std::move(scheduler)),
      inbox_(limits.max_unfinished),
      answers_(inbox_),
      steps_(*scheduler_, *executor_, answers_, proposer_.get()) {
  publish_stats(true);
  thread_ = std::thread([this] { thread_main(); });
}

Engine::~Engine() {
  inbox_.stop();
  thread_.join();
}

// What can never be served is refused here, on the caller's thread.
Result<RequestId> Engine::submit(Request request, std::shared_ptr<OutputSink> sink) {
  if (!stats().healthy) return failure(ErrorCode::unavailable, "the engine has failed");
  for (const TokenId id : request.prompt) {
    if (id < 0 || id >= limits_.vocab_size)
      return invalid("prompt", "token id must be in [0, {}), got {}", limits_.vocab_size, id);
  }
  TRY_VOID(scheduler_->fits(request.prompt.size(), max_total_tokens(request)));
  return inbox_.submit(std::move(request), std::move(sink));
}

EngineStats Engine::stats() const {
  const std::lock_guard lock(stats_mutex_);
  return stats_;
}

void Engine::drain() {
  inbox_.close();
  inbox_.wait_empty();
}

// Of prompt and answer. A prompt that fills the context is refused by fits().
int Engine::max_total_tokens(const Request& request) const {
  const int context = scheduler_->options().max_model_len;
  return static_cast<int>(request.prompt.size()) + FinishRule::output_tokens_max(request, context);
}

void Engine::thread_main() {
  Mail mail;
  bool idle = true;
  bool healthy = true;
  while (inbox_.take(mail, idle)) {
    if (mail.reset_prefix_cache) scheduler_->reset_prefix_cache();
    for (Submission& submission : mail.submissions) admit(submission);
    for (const RequestId id : mail.aborts) abort_request(id);
    const Result<bool> ran = healthy ? steps_.run() : Result<bool>(false);
    if (!ran) {
      healthy = false;
      log_error("the engine cannot go on: {}", ran.error().message);
      fail_everything(ran.error());
    }
    idle = !ran.value_or(false);
    publish_stats(healthy);
  }
  for (Submission& submission : mail.submissions) admit(submission);  // so that they, too, get an end
  fail_everything({ErrorCode::unavailable, "the engine was stopped", {}});
  publish_stats(false);
}

void Engine::admit(Submission& submission) {
  auto accepted = std::make_shared<Accepted>();
  accepted->id = submission.id;
  accepted->request = std::move(submission.request);
  accepted->sink = std::move(submission.sink);
  accepted->arrived_us = submission.arrived_us;
  const Request& request = accepted->request;
  accepted->unfinished = request.sampling.n;

  SequenceSpec spec;
  spec.prompt = request.prompt;
  spec.max_total_tokens = max_total_tokens(request);
  spec.priority = request.priority;
  spec.salt = request.cache_salt;
  spec.read_prefix_cache = request.read_prefix_cache && !request.sampling.prompt_logprobs;
  const std::uint64_t entropy = random_bits(limits_.seed, submission.id);
  for (int index = 0; index < request.sampling.n; ++index) {
    const AnswerIndex opened =
        answers_.open(std::make_unique<Answer>(accepted, index, answer_seed(request.sampling, index, entropy),
                                               scheduler_->options().max_model_len, limits_.vocab_size));
    spec.tag = opened;
    if (const auto sequence = scheduler_->add(spec)) {
      answers_[opened].sequence = *sequence;
    } else {
      answers_.fail(opened, sequence.error().message, now_us());
    }
  }
}

void Engine::abort_request(RequestId id) {
  answers_.for_request(id, [&](AnswerIndex index, const Answer& answer) {
    scheduler_->finish(answer.sequence);
    answers_.abort(index, now_us());
  });
}

void Engine::fail_everything(const Error& error) {
  answers_.for_all([&](AnswerIndex index, const Answer& answer) {
    scheduler_->finish(answer.sequence);
    answers_.fail(index, error.message, now_us());
  });
}

void Engine::publish_stats(bool healthy) {
  const SchedulerStats s = scheduler_->stats();
  const std::lock_guard lock(stats_mutex_);
  stats_.unfinished = answers_.open_count();
  stats_.running = s.running;
  stats_.waiting = s.waiting;
  stats_.blocks_total = s.blocks_total;
  stats_.blocks_used = s.blocks_used;
  stats_.blocks_cached = s.blocks_cached;
  stats_.preemptions = s.preemptions;
  stats_.prefix_queries = s.prefix_queries;
  stats_.prefix_hits = s.prefix_hits;
  stats_.request_bytes = s.sequence_bytes;
  stats_.prompt_tokens = answers_.counters().prompt_tokens;
  stats_.prompt_tokens_cached = answers_.counters().prompt_tokens_cached;
  stats_.generation_tokens = answers_.counters().generation_tokens;
  stats_.step_tokens = steps_.step_tokens();
  stats_.grammar_masks = steps_.mask_counters().filled;
  stats_.grammar_mask_ns = steps_.mask_counters().nanoseconds;
  stats_.drafts = steps_.draft_counters().drafts;
  stats_.draft_tokens = steps_.draft_counters().tokens;
  stats_.accepted_drafts = steps_.draft_counters().accepted;
  stats_.healthy = healthy;
}

}  // namespace octavo
