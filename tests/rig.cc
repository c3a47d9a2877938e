#include "rig.h"

#include <bit>
#include <chrono>
#include <future>
#include <random>
#include <thread>
#include <utility>

#include "engine/draft/load_draft.h"
#include "engine/execute/local_executor.h"

namespace octavo {
namespace {

constexpr int kVocab = 4096;  // vocabulary size of the demo model

std::shared_ptr<Ticket> submit_to(Engine& engine, const Request& request) {
  auto ticket = std::make_shared<Ticket>(request.sampling.n);
  ticket->id = engine.submit(request, ticket).value();
  return ticket;
}

using Tickets = std::vector<std::shared_ptr<Ticket>>;

Tickets submit_all(Engine& engine, const std::vector<Request>& requests) {
  Tickets tickets;
  for (const Request& request : requests) tickets.push_back(submit_to(engine, request));
  return tickets;
}

std::vector<Answers> wait_all(const Tickets& tickets) {
  std::vector<Answers> answers;
  for (const auto& ticket : tickets) answers.push_back(ticket->wait());
  return answers;
}

void append(std::vector<std::uint32_t>& words, const std::vector<TokenLogprobs>& entries) {
  for (const TokenLogprobs& entry : entries) {
    words.push_back(static_cast<std::uint32_t>(entry.id));
    words.push_back(std::bit_cast<std::uint32_t>(entry.logprob));
    words.push_back(static_cast<std::uint32_t>(entry.rank));
    for (const auto& [id, logprob] : entry.top) {
      words.push_back(static_cast<std::uint32_t>(id));
      words.push_back(std::bit_cast<std::uint32_t>(logprob));
    }
  }
}

}  // namespace

void Ticket::deliver(Output&& output) noexcept {
  const std::lock_guard lock(mutex_);
  const auto index = static_cast<std::size_t>(output.index);
  Transcript& answer = answers_[index];
  append(prompt_logprobs_[index], output.prompt_logprobs);
  append(answer.logprobs, output.logprobs);
  answer.tokens.insert(answer.tokens.end(), output.token_ids.begin(), output.token_ids.end());
  started_ = started_ || !output.token_ids.empty();
  if (!output.finished) return;
  answer.finished = *output.finished;
  answer.stop_token = output.stop_token;
  answer.logprobs.insert(answer.logprobs.begin(), prompt_logprobs_[index].begin(),
                         prompt_logprobs_[index].end());
  if (--unfinished_ == 0) ended_.notify_all();
}

Answers Ticket::wait() {
  std::unique_lock lock(mutex_);
  ended_.wait(lock, [&] { return unfinished_ == 0; });
  return answers_;
}

bool Ticket::started() {
  const std::lock_guard lock(mutex_);
  return started_;
}

Rig::Rig(const RigOptions& options) {
  Backend backend = make_cpu_backend({.threads = options.threads, .isa = options.isa}).value();
  auto model =
      Model::load(options.model, backend,
                  {.dtype = options.dtype, .quantization = options.quantization, .threads = options.threads})
          .value();
  const CacheLayout layout =
      cache_layout(model->spec, {.block_size = options.block_size,
                                 .dtype = options.cache_dtype.value_or(model->activation),
                                 .window_groups = true});
  SchedulerOptions scheduler;
  scheduler.block_size = options.block_size;
  scheduler.num_blocks = options.num_blocks;
  scheduler.groups.clear();
  for (const LayerGroup& group : layout.groups) scheduler.groups.push_back({group.window});
  scheduler.enable_prefix_caching = options.prefix_caching;
  scheduler.max_num_batched_tokens = options.max_num_batched_tokens;
  scheduler.max_num_seqs = options.max_num_seqs;
  scheduler.long_prefill_token_threshold = options.long_prefill_token_threshold;
  scheduler.policy = options.policy;
  scheduler.max_model_len = model->max_model_len;
  const auto shared = std::make_shared<Backend>(std::move(backend));
  auto executor = LocalExecutor::create(
                      shared, std::move(model), layout,
                      {.max_tokens = options.max_num_batched_tokens, .max_sequences = options.max_num_seqs})
                      .value();
  CHECK(executor->allocate_cache(options.num_blocks, options.max_num_seqs).has_value());
  EngineParts parts;
  if (options.speculation) {
    EngineOptions engine;
    engine.cache.block_size = options.block_size;
    engine.speculation = options.speculation;
    std::optional<LoadedDraft> draft;
    if (options.speculation->draft_model() != nullptr)
      draft = load_draft(shared, engine, executor->model().spec, scheduler).value();
    scheduler.max_draft_tokens = options.speculation->num_speculative_tokens;
    parts.proposer = make_proposer(shared, *options.speculation, *executor, std::move(draft), scheduler).value();
    parts.draft_policy = draft_policy(*options.speculation, options.block_size, usual_free_tokens(*shared->device));
  }
  parts.executor = std::move(executor);
  engine_ = Engine::start(std::move(scheduler), {.vocab_size = kVocab}, std::move(parts)).value();
}

std::shared_ptr<Ticket> Rig::submit(const Request& request) { return submit_to(*engine_, request); }

std::vector<Answers> Rig::run(const std::vector<Request>& requests) { return answers_of(*engine_, requests); }

std::vector<Answers> Rig::run_paused(const std::vector<Request>& requests) {
  std::promise<void> paused;
  engine_->pause(PauseMode::keep, [&](const Result<>&) { paused.set_value(); });
  paused.get_future().wait();
  const auto tickets = submit_all(*engine_, requests);
  engine_->resume();
  return wait_all(tickets);
}

std::vector<Answers> answers_of(Engine& engine, const std::vector<Request>& requests) {
  return wait_all(submit_all(engine, requests));
}

std::vector<Answers> Rig::run_alone(const std::vector<Request>& requests) {
  std::vector<Answers> answers;
  for (const Request& request : requests) {
    Answers& of_request = answers.emplace_back();
    for (int index = 0; index < request.sampling.n; ++index) {
      Request one = request;
      one.sampling.n = 1;
      if (one.sampling.seed) *one.sampling.seed += index;
      of_request.push_back(submit(one)->wait().front());
    }
  }
  return answers;
}

EngineStats Rig::idle_stats() {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  for (;;) {
    const EngineStats stats = engine_->own_stats();
    if (stats.requests.unfinished == 0 && stats.blocks.used == 0) return stats;
    if (std::chrono::steady_clock::now() > deadline) return stats;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

namespace {

using Text = std::vector<TokenId>;

class Chance {
 public:
  Chance(std::uint32_t seed, int vocab) : random_(seed), vocab_(vocab) {}
  int between(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
  double between(double low, double high) { return std::uniform_real_distribution(low, high)(random_); }
  bool one_in(int n) { return between(1, n) == 1; }
  int vocab() const { return vocab_; }
  TokenId token() { return between(0, vocab_ - 1); }
  // Maps a token of the demo model to this vocabulary.
  TokenId like(TokenId token) const { return static_cast<TokenId>(std::int64_t{token} * vocab_ / kVocab); }

 private:
  std::mt19937 random_;
  int vocab_;
};

// Returns long texts with different beginnings.
std::vector<Text> write_texts(Engine& engine, Chance& chance, int count, int length) {
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.prompt = {chance.token()};
    request.sampling.seed = chance.token();
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = length;
    requests.push_back(std::move(request));
  }
  std::vector<Text> texts;
  for (Answers& answers : answers_of(engine, requests)) texts.push_back(std::move(answers.front().tokens));
  return texts;
}

// Most prompts are short; some have the maximum length.
Text random_prompt(const std::vector<Text>& texts, Chance& chance) {
  const Text& text = texts[static_cast<std::size_t>(chance.between(0, static_cast<int>(texts.size()) - 1))];
  const double share = chance.between(0.0, 1.0);
  const auto longest = static_cast<int>(text.size());
  const int length = chance.one_in(40) ? longest : 1 + static_cast<int>(longest * 3 / 4 * share * share * share);
  Text prompt(text.begin(), text.begin() + length);
  if (chance.one_in(3)) prompt.back() = chance.token();
  if (chance.one_in(5)) prompt.front() = chance.token();
  return prompt;
}

SamplingParams random_sampling(Chance& chance) {
  SamplingParams s;
  s.temperature = chance.one_in(3) ? 0 : chance.between(0.1, 1.8);
  s.seed = chance.between(0, 1 << 30);
  s.max_tokens = chance.between(1, kOutputTokensMax);
  s.ignore_eos = chance.one_in(2);
  if (chance.one_in(3)) s.top_k = chance.between(1, 50);
  if (chance.one_in(3)) s.top_p = chance.between(0.3, 1.0);
  if (chance.one_in(6)) s.min_p = chance.between(0.0, 0.2);
  if (chance.one_in(6)) s.penalties.repetition = chance.between(0.7, 1.6);
  if (chance.one_in(6)) s.penalties.presence = chance.between(-1.0, 1.5);
  if (chance.one_in(6)) s.penalties.frequency = chance.between(-1.0, 1.5);
  if (chance.one_in(8))
    for (TokenId id = chance.like(300); id < chance.like(330) + 1; ++id)
      s.tokens.logit_bias.emplace_back(id, static_cast<float>(chance.between(-9.0, 9.0)));
  if (chance.one_in(12))
    for (TokenId id = chance.like(200); id < chance.like(900); id += 3)
      s.tokens.allowed_token_ids.push_back(id);
  if (chance.one_in(8)) s.tokens.bad_word_ids = {{chance.token()}, {chance.token(), chance.token()}};
  if (chance.one_in(8))
    for (int i = 0; i < 40; ++i) s.stop_token_ids.push_back(chance.token());
  if (chance.one_in(8)) s.min_tokens = chance.between(0, *s.max_tokens);
  if (!chance.one_in(8)) s.logprobs.output = chance.between(0, 5);
  if (chance.one_in(10)) s.logprobs.prompt = chance.between(0, 3);
  if (!s.greedy() && chance.one_in(10)) s.n = chance.between(2, 4);
  return validated(s, {.vocab_size = chance.vocab()}).value();
}

}  // namespace

std::vector<Request> random_requests(Rig& rig, int count, std::uint32_t seed) {
  return random_requests(rig.engine(), {.vocab = kVocab}, count, seed);
}

std::vector<Request> random_requests(Engine& engine, const RequestLimits& limits, int count, std::uint32_t seed) {
  Chance chance(seed, limits.vocab);
  const std::vector<Text> texts = write_texts(engine, chance, 8, limits.prompt_tokens);
  std::vector<Request> requests;
  for (int i = 0; i < count; ++i) {
    Request request;
    request.prompt = random_prompt(texts, chance);
    request.sampling = random_sampling(chance);
    request.eos_ids = {limits.vocab - 5};
    request.priority = chance.between(0, 3);
    if (chance.one_in(10)) request.identity.salt = "1";
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace octavo
