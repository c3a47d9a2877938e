#include "engine/loop/engine.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "base/out_of_memory.h"
#include "base/random.h"
#include "engine/loop/prefix_tree.h"
#include "engine/loop/state_text.h"
#include "events/kv_event_publisher.h"
#include "request/check_request.h"

namespace octavo {
Result<std::unique_ptr<Engine>> Engine::start(SchedulerOptions options, EngineInfo info, EngineParts parts) {
  options.max_sequences = options.max_num_seqs + info.max_queued;
  options.max_steps_in_flight = parts.executor->steps_in_flight();
  options.samples_ahead = parts.executor->stages() == 1;
  info.max_num_seqs = options.max_num_seqs;
  // The scheduler counts one output token for a pooling request.
  info.max_model_len = options.max_model_len - (info.tasks.default_task != Task::generate ? 1 : 0);
  info.num_blocks = options.num_blocks;
  info.block_size = options.block_size;
  info.priorities = options.policy == Policy::priority;
  TRY(auto scheduler, Scheduler::create(std::move(options)));
  std::unique_ptr<KvEventPublisher> events;
  if (parts.kv_events.enabled) {
    TRY(events, KvEventPublisher::start(parts.kv_events, scheduler->cache(), info.index));
    log_info("KV cache events: {} {}", events->bound() ? "listening at" : "connecting to",
             events->endpoint());
  }
  const KvTransferOptions transfer = parts.kv_transfer;
  const int threads = parts.threads;
  std::unique_ptr<Engine> engine(
      new Engine(std::move(scheduler), std::move(events), std::move(info), std::move(parts)));
  engine->restore_kept(threads);
  if (transfer.enabled) TRY_VOID(engine->start_transfers(transfer));
  if (LockStep* lock = engine->executor_->lock_step()) {
    TRY(engine->engines_watch_,
        ArrivalWatch::start(lock->engine_sockets(), [e = engine.get()] { e->inbox_.wake(); }));
  }
  engine->publish_stats(true);
  engine->publish_events();
  engine->thread_ = std::thread([e = engine.get()] { e->thread_main(); });
  return engine;
}

Engine::Engine(std::unique_ptr<Scheduler> scheduler, std::unique_ptr<KvEventPublisher> events,
               EngineInfo info, EngineParts parts)
    : info_(std::move(info)),
      seed_(parts.seed),
      executor_(std::move(parts.executor)),
      proposer_(std::move(parts.proposer)),
      observers_{.events = std::move(events),
                 .residency = {},
                 .kept = std::move(parts.kept),
                 .after_step = std::move(parts.after_step)},
      scheduler_(std::move(scheduler)),
      sessions_(*scheduler_, info_.index, parts.sessions.with_cost(parts.work_figures),
                executor_->block_exchange()),
      inbox_(scheduler_->options().max_sequences),
      grammars_(
          std::move(parts.vocabulary),
          [this](RequestId id, CompiledGrammar grammar) { inbox_.grammar_ready({id, std::move(grammar)}); }),
      answers_(inbox_, info_.index,
               [this](const Answer& answer, bool whole) -> std::optional<KvTransferParams> {
                 end_turn(answer);
                 if (!transfers_ || !whole) return std::nullopt;
                 const Sequence* sequence = scheduler_->find(answer.sequence);
                 return transfers_->offer(*answer.accepted,
                                          sequence != nullptr ? sequence->tokens : std::span<const TokenId>(),
                                          now_us());
               }),
      adapters_(executor_->adapters(), info_.max_loras, [this] { inbox_.wake(); }),
      media_(executor_->media_encoder(),
             info_.slots() > 0 ? info_.slots() : image_tokens_max(info_.max_model_len)),
      masks_([this](MaskTask& task) {
        task.text->advance();
        inbox_.mask_ready(task.sequence);
      }),
      steps_(info_, *scheduler_, *executor_, answers_, masks_, proposer_.get(), std::move(parts.draft_policy),
             parts.work_figures, parts.report_work),
      watch_(parts.watch, executor_->asynchronous()) {
  if (parts.kv_residency_sample > 0)
    scheduler_->observe(observers_.residency.emplace(parts.kv_residency_sample));
}

Engine::~Engine() {
  inbox_.stop();
  if (thread_.joinable()) thread_.join();
}

Result<> Engine::start_transfers(const KvTransferOptions& options) {
  TRY(transfers_,
      KvTransfers::start(options, info_.index, *scheduler_, *executor_,
                         observers_.events ? &observers_.events->log() : nullptr, [this] { inbox_.wake(); }));
  return {};
}

// Runs on the caller's thread. Rejects requests that can never run.
Result<RequestId> Engine::submit(Request request, std::shared_ptr<OutputSink> sink) {
  if (!own_stats().condition.healthy) return failure(ErrorCode::unavailable, "the engine has failed");
  TRY_VOID(check_request(request, info_));
  TRY_VOID(scheduler_->fits(request.prompt.size(), max_total_tokens(request)));
  return inbox_.submit(std::move(request), std::move(sink));
}

EngineStats Engine::own_stats() const {
  const std::lock_guard lock(stats_mutex_);
  EngineStats stats = stats_;
  stats.condition.hangs = watch_.hangs();
  stats.condition.paused = inbox_.paused();
  return stats;
}

void Engine::drain() {
  inbox_.close();
  inbox_.wait_empty();
}

void Engine::sleep(int level, Done done) {
  if (level != 1)
    return done(invalid("level", "must be 1, got {}, because this engine cannot free its weights", level));
  inbox_.sleep(std::move(done));
}

// Returns the maximum number of prompt and output tokens together. Scheduler::fits() rejects a prompt that
// fills the context.
int Engine::max_total_tokens(const Request& request) const {
  if (request.task != Task::generate) return static_cast<int>(request.prompt.size()) + 1;
  const int context = scheduler_->options().max_model_len;
  return static_cast<int>(request.prompt.size()) + FinishRule::output_tokens_max(request, context);
}

void Engine::thread_main() {
  watch_.start();
  Mail mail;
  Result<bool> ran = false;  // An error means that the device failed permanently.
  // In the first iteration, assist_engines() starts the watch for steps of other engines.
  bool gave_way = false, assisted = engines_watch_ != nullptr;
  const auto wait_until = [&] {
    if ((ran.value_or(false) && !mail.frozen) || gave_way || assisted || adapters_.preparing() ||
        media_.encoding() || !waiting_.sessions.empty())
      return std::int64_t{0};
    return transfers_ ? transfers_->wake_at_us() : kForever;
  };
  while (inbox_.take(mail, wait_until())) {
    sessions_.advance(now_us());
    if (mail.reset_prefix_cache) empty_cache();
    for (SessionRequest& request : mail.sessions) waiting_.sessions.push_back(std::move(request));
    run_session_commands();
    for (AdapterCommand& command : mail.adapters) take(command);
    for (Done& done : mail.sleeps) waiting_.sleeps.push_back(std::move(done));
    if (const Result<> awake = wake(mail.wakes); !awake) ran = std::unexpected(awake.error());
    for (Submission& submission : mail.submissions) admit(submission);
    for (const GrammarReady& ready : mail.grammars) start_guided(ready);
    for (const SequenceId sequence : mail.masks) steps_.resume(sequence);
    for (const RequestId id : mail.aborts) abort_request(id);
    for (Pause& wanted : mail.pauses) begin_pause(std::move(wanted));
    advance_adapters();
    advance_media();
    // Must come after all calls that may add a request to the waiting transfers.
    if (transfers_) advance_transfers();
    if (!mail.frozen && ran) {
      watch_.begin_step();
      const std::int64_t began_us = now_us();
      ran = steps_.run();
      if (ran.value_or(false)) step_us_ = now_us() - began_us;
      watch_.end_step();
      if (!ran) {
        log_error("the engine cannot continue: {}", ran.error().message);
        write_state(LogLevel::error);
      }
    }
    assisted = (mail.frozen || !ran.value_or(true)) && assist_engines(ran);
    // Also fails the requests that arrived during the failed step.
    if (!ran) fail_everything(ran.error());
    gave_way = !mail.frozen && ran.has_value() && !*ran && must_give_way();
    if (!waiting_.sleeps.empty()) fall_asleep();
    publish_stats(ran.has_value());
    if (!waiting_.pauses.empty()) end_pauses_once_still(mail.frozen);  // with the stats of the last step
    if (mail.look_at_prefixes) publish_prefixes();
    if (mail.log_state) write_state(LogLevel::info);
    publish_events();
    if (observers_.after_step) observers_.after_step();
  }
  // Adapter commands are passed on to the AdapterTable even when the engine stops: its destructor completes
  // them with an error.
  for (AdapterCommand& command : mail.adapters) take(command);
  for (SessionRequest& request : mail.sessions) waiting_.sessions.push_back(std::move(request));
  while (!waiting_.sessions.empty()) run_session_commands();
  // Requests are admitted even when the engine stops, because every request must get a final output.
  for (Submission& submission : mail.submissions) admit(submission);
  for (Done& done : mail.sleeps) waiting_.sleeps.push_back(std::move(done));
  for (const Done& done : mail.wakes) done(failure(ErrorCode::unavailable, "the engine was stopped"));
  for (Pause& wanted : mail.pauses) waiting_.pauses.push_back(std::move(wanted));
  end_sleeps(failure(ErrorCode::unavailable, "the engine was stopped"));
  end_pauses(failure(ErrorCode::unavailable, "the engine was stopped"));
  fail_everything({ErrorCode::unavailable, "the engine was stopped", {}});
  publish_stats(false);
  if (observers_.after_step) observers_.after_step();
  watch_.stop();  // Stops the watch on this thread, because it reads the CPU clock of this thread.
}

// Called while this engine has no step. Assists the step of another engine that shares experts. Returns
// false if no engine has started a step. Sets `ran` to the error if the device failed.
bool Engine::assist_engines(Result<bool>& ran) {
  LockStep* const lock = executor_->lock_step();
  if (lock == nullptr || !ran || !lock->is_called(*engines_watch_)) return false;
  if (const Result<> done = lock->assist(); !done) {
    log_error("the engine cannot continue: {}", done.error().message);
    ran = std::unexpected(done.error());
  }
  return true;
}

void Engine::write_state(LogLevel level) {
  log(level, "state of engine {}: {}", info_.index, state_text(*scheduler_, answers_));
  if (const StepPlan& plan = steps_.last_plan(); plan.step > 0) log(level, "last plan: {}", plan_text(plan));
}

void Engine::admit(Submission& submission) {
  auto accepted = std::make_shared<Accepted>();
  accepted->id = submission.id;
  accepted->request = std::move(submission.request);
  accepted->sink = std::move(submission.sink);
  accepted->arrived_us = submission.arrived_us;
  const Request& request = accepted->request;
  sessions_.begin(accepted);
  accepted->unfinished = request.answers();
  if (info_.image.whole_prompts)
    accepted->wholes = {{0, static_cast<int>(request.prompt.size())}};
  else if (info_.image.whole)
    accepted->wholes = media_spans(request.media);
  if (request.answers_so_far.empty())
    for (int i = 0; i < request.sampling.n; ++i) accepted->request.answers_so_far.push_back({i, {}});

  const std::uint64_t entropy = request.entropy.value_or(random_bits(seed_, submission.id));
  for (const AnswerSoFar& begun : request.answers_so_far) {
    const AnswerIndex opened = answers_.open(
        std::make_unique<Answer>(accepted, begun, answer_seed(request.sampling, begun.index, entropy),
                                 info_.max_model_len, info_.vocab_size));
    start(opened);
  }
  if (!request.media.empty()) media_.add(accepted);
  if (!request.grammar) return;
  if (auto known = grammars_.known(*request.grammar)) {
    start_guided({accepted->id, std::move(known)});
  } else {
    grammars_.post(accepted->id, *accepted->request.grammar);
  }
}

// Schedules the answer if its grammar, media, adapter and loaded blocks are ready.
void Engine::start(AnswerIndex index) {
  Answer& answer = answers_[index];
  const Request& request = answer.accepted->request;
  if (request.grammar && !answer.guided) return;
  if (answer.accepted->encoded.size() < request.media.size()) return;
  CacheIdentity identity = request.identity;
  if (!identity.adapter.empty()) {
    const auto use = adapters_.use(identity.adapter);
    if (!use) return answers_.fail(index, use.error(), now_us());
    if (!*use) return;
    answer.adapter = (*use)->slot;
    // The identity contains the digest of the adapter's files instead of the name, because the KV depends
    // on the weights.
    identity.adapter = fmt::format("{:016x}{:016x}", (*use)->digest.high, (*use)->digest.low);
  }
  answer.accepted->identity = with_sources(identity.digest(), request.media);
  if (info_.image.whole_prompts)
    answer.accepted->identity = with_prompt(answer.accepted->identity, request.prompt, request.media);
  // Events can report the identity as the names of adapter and salt, if it contains neither a tenant nor
  // media.
  if (observers_.events && identity != CacheIdentity{} && identity.tenant.empty() && request.media.empty() &&
      !info_.image.whole_prompts)
    observers_.events->name(answer.accepted->identity, {request.identity.adapter, request.identity.salt});
  if (!transfers_ || transfers_->ready(answer.accepted, now_us())) schedule(index);
}

void Engine::schedule(AnswerIndex index) {
  Answer& answer = answers_[index];
  const Request& request = answer.accepted->request;
  const auto sequence = within_memory([&] {
    return scheduler_->add(
        {.prompt = request.prompt,
         .output = answer.so_far.tokens,
         .max_total_tokens = max_total_tokens(request),
         .priority = request.priority,
         .identity = answer.accepted->identity,
         .read_prefix_cache = request.read_prefix_cache && !request.sampling.logprobs.of_prompt() &&
                              !is_of_tokens(request.task),
         .tag = index,
         .second_text = request.second_text.value_or(kNoSecondText),
         .extras = media_identities(answer.accepted->identity, request.media, info_.block_size),
         .checkpoint = transfers_ ? transfers_->checkpoint_of(request) : 0,
         .wholes = answer.accepted->wholes});
  });
  if (sequence) {
    answer.sequence = *sequence;
  } else {
    answers_.fail(index, sequence.error(), now_us());
  }
}

// If the request has ended while its grammar was compiled, it has no open answers, and nothing happens.
void Engine::start_guided(const GrammarReady& ready) {
  answers_.for_request(ready.id, [&](AnswerIndex index, Answer& answer) {
    if (!ready.grammar) return answers_.fail(index, ready.grammar.error(), now_us());
    const Result<> follows = within_memory([&]() -> Result<> {
      if (answer.follow(*ready.grammar)) return {};
      return failure(ErrorCode::internal, "the answer so far does not follow the grammar");
    });
    if (!follows) return answers_.fail(index, follows.error(), now_us());
    start(index);
  });
}

void Engine::take(AdapterCommand& command) {
  if (command.unload)
    adapters_.unload(command.source.name, command.done);
  else
    adapters_.load(std::move(command.source), std::move(command.done));
}

void Engine::advance_adapters() {
  const auto is_used = [&](int slot) {
    bool used = steps_.uses_adapter(slot);
    answers_.for_all([&](AnswerIndex, const Answer& answer) { used |= answer.adapter == slot; });
    return used;
  };
  if (!adapters_.advance(is_used)) return;
  answers_.for_all([&](AnswerIndex index, const Answer& answer) {
    if (!answer.accepted->request.identity.adapter.empty() && answer.adapter < 0) start(index);
  });
}

void Engine::advance_transfers() {
  for (const RequestId id : transfers_->advance(now_us(), steps_.records().prompt_token_seconds()))
    answers_.for_request(id, [&](AnswerIndex index, const Answer&) { start(index); });
  steps_.forget_blocks(transfers_->take_loaded());
}

// Returns whether no step can run because there are too few free blocks, while other engines hold leases on
// blocks.
bool Engine::must_give_way() const {
  if (!transfers_ || steps_.guidance().under_way() > 0) return false;
  const SchedulerStats s = scheduler_->stats();
  return s.running + s.waiting > 0 && transfers_->give_way();
}

// A slice has at most max_num_batched_tokens rows. While answers are decoding, slices are small and
// together take at most half of the time of the last step, so that decoding takes at most 1.5 times as
// long.
void Engine::advance_media() {
  constexpr int kPieces = 16, kRowsMin = 16;
  MediaTable::Slices slices{.rows = scheduler_->options().max_num_batched_tokens};
  const std::int64_t step_us = std::exchange(step_us_, 0);
  if (step_us > 0 && !executor_->asynchronous())
    slices = {.rows = std::min(slices.rows, std::max(kRowsMin, slices.rows / kPieces)),
              .until_us = now_us() + step_us / 2};
  const std::optional<MediaTable::Ready> ready = media_.advance(slices);
  if (!ready) return;
  answers_.for_request(ready->id, [&](AnswerIndex index, const Answer&) {
    ready->result ? start(index) : answers_.fail(index, ready->result.error(), now_us());
  });
}

void Engine::abort_request(RequestId id) {
  grammars_.cancel(id);
  answers_.for_request(id, [&](AnswerIndex index, const Answer& answer) {
    const SequenceId sequence = answer.sequence;
    answers_.abort(index, now_us());
    steps_.finish(sequence);
  });
}

// The session holds the blocks of the last answer that ends, or of the prompt if its sequence is gone.
void Engine::end_turn(const Answer& answer) {
  const Accepted& accepted = *answer.accepted;
  if (!accepted.request.session || accepted.unfinished > 1) return;
  std::span<const TokenId> text = accepted.scheduled ? accepted.request.prompt : std::span<const TokenId>();
  if (const Sequence* sequence = scheduler_->find(answer.sequence)) text = sequence->tokens;
  sessions_.end(accepted, text, answer.cached_tokens);
}

void Engine::fail_everything(const Error& error) {
  answers_.for_all([&](AnswerIndex index, const Answer& answer) {
    steps_.finish(answer.sequence);
    answers_.fail(index, error, now_us());
  });
}

// Blocks are restored in the order of their last use, but readers of events need parents first. So the log
// begins after the restoration, and then lists all contents.
void Engine::restore_kept(int threads) {
  std::vector<BlockId> restored;
  if (observers_.kept) restored = observers_.kept->restore(*scheduler_, threads);
  if (observers_.events) {
    scheduler_->log_to(observers_.events->log());
    if (!restored.empty()) observers_.events->log().lose();
  }
  steps_.forget_blocks(restored);
}

void Engine::publish_events() {
  if (!observers_.events) return;
  scheduler_->log_all();
  observers_.events->log().flush();
}

void Engine::publish_adapters() {
  if (info_.max_loras == 0) return;
  stats_.adapters.clear();
  answers_.for_all([&](AnswerIndex, const Answer& answer) {
    const std::string& name = answer.accepted->request.identity.adapter;
    if (name.empty()) return;
    auto of = std::ranges::find(stats_.adapters, name, &AdapterStats::name);
    if (of == stats_.adapters.end()) of = stats_.adapters.insert(of, {.name = name});
    ++(answer.times.scheduled_us == 0 ? of->waiting : of->running);
  });
}

void Engine::publish_prefixes() {
  PrefixTree tree = prefix_tree(scheduler_->cache().pool, kPrefixNodesMax);
  const std::lock_guard lock(stats_mutex_);
  stats_.prefix_cache.tree = std::move(tree);
}

void Engine::publish_stats(bool healthy) {
  const SchedulerStats s = scheduler_->stats();
  const std::lock_guard lock(stats_mutex_);
  publish_adapters();
  stats_.engine = info_.index;
  stats_.requests.unfinished = answers_.open_count();
  stats_.requests.running = s.running;
  stats_.requests.waiting = answers_.open_count() - s.running;
  stats_.requests.deferred = stats_.requests.waiting - s.waiting;
  stats_.blocks.total = s.blocks_total;
  // Blocks that only idle sessions hold count as cached blocks, because requests can take them.
  stats_.prefix_cache.sessions = sessions_.stats();
  const int idle = std::min(stats_.prefix_cache.sessions.idle_blocks, s.blocks_used);
  stats_.blocks.used = s.blocks_used - idle;
  stats_.blocks.cached = s.blocks_cached + idle;
  stats_.preemptions = s.preemptions;
  stats_.prefix_cache.queries = s.prefix_queries;
  stats_.prefix_cache.hits = s.prefix_hits;
  if (observers_.kept) stats_.kept_blocks = observers_.kept->stats();
  stats_.requests.bytes = s.sequence_bytes;
  stats_.tokens.prompt = answers_.counters().prompt_tokens;
  stats_.tokens.prompt_cached = answers_.counters().prompt_tokens_cached;
  stats_.tokens.generation = answers_.counters().generation_tokens;
  stats_.step_tokens = steps_.records().tokens();
  stats_.recent_steps = steps_.records().recent();
  grammars_.add_stats(stats_);
  if (transfers_) transfers_->add_stats(stats_);
  stats_.kv_transfer.used_by_source = answers_.counters().prompt_tokens_loaded;
  stats_.grammars.masks = steps_.guidance().counters().filled;
  stats_.grammars.mask_ns = steps_.guidance().counters().nanoseconds;
  stats_.grammars.masks_deferred = steps_.guidance().counters().deferred;
  stats_.drafts.drafts = steps_.draft_counters().drafts;
  stats_.drafts.tokens = steps_.draft_counters().tokens;
  stats_.drafts.accepted = steps_.draft_counters().accepted;
  if (observers_.residency) stats_.kv_residency = observers_.residency->stats();
  stats_.work = steps_.records().work();
  stats_.costs = steps_.costs().stats();
  stats_.media_cache = media_.stats();
  stats_.condition.healthy = healthy;
}

}  // namespace octavo
