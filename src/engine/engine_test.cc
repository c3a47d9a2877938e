#include "engine/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <mutex>
#include <numeric>
#include <random>

#include "engine/simulated_executor.h"
#include "grammar/grammar_cache.h"

namespace octavo {
namespace {

constexpr int kVocab = 1000;
constexpr int kBlock = 16;

// Keeps everything that arrives.
class Recorder final : public OutputSink {
 public:
  struct Record {
    std::vector<TokenId> tokens;
    std::vector<TokenLogprobs> logprobs, prompt_logprobs;
    std::vector<Output> ends;
  };

  void deliver(Output&& output) noexcept override {
    const std::lock_guard lock(mutex_);
    Record& r = records_[output.index];
    EXPECT_TRUE(r.ends.empty()) << "an output after the end";
    r.tokens.insert(r.tokens.end(), output.token_ids.begin(), output.token_ids.end());
    r.logprobs.insert(r.logprobs.end(), output.logprobs.begin(), output.logprobs.end());
    r.prompt_logprobs.insert(r.prompt_logprobs.end(), output.prompt_logprobs.begin(),
                             output.prompt_logprobs.end());
    ++outputs_;
    if (output.finished) {
      r.ends.push_back(std::move(output));
      ++ended_;
    }
    changed_.notify_all();
  }

  void wait_ended(int answers) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ended_ >= answers; });
  }
  void wait_outputs(int outputs) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return outputs_ >= outputs; });
  }
  Record record(int index = 0) {
    const std::lock_guard lock(mutex_);
    return records_[index];
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, Record> records_;
  int ended_ = 0;
  int outputs_ = 0;
};

// How the engine runs: one step after the other, on a device that works by itself, or with guesses.
enum class Mode : std::uint8_t { synchronous, asynchronous, guessing };

// Knows the texts that it was told, and guesses how they go on, with mistakes.
class Prompter final : public Proposer {
 public:
  void learn(std::vector<TokenId> prompt, std::span<const TokenId> answer) {
    const std::lock_guard lock(mutex_);
    prompt.insert(prompt.end(), answer.begin(), answer.end());
    texts_.push_back(std::move(prompt));
  }

  void propose(std::span<const TokenId> text, std::vector<TokenId>& drafts) override {
    const std::lock_guard lock(mutex_);
    drafts.clear();
    for (const auto& known : texts_) {
      if (known.size() <= text.size() || !std::equal(text.begin(), text.end(), known.begin())) continue;
      const std::size_t count = std::min<std::size_t>(random_() % 6, known.size() - text.size());
      for (std::size_t i = 0; i < count; ++i)
        drafts.push_back(random_() % 4 == 0 ? static_cast<TokenId>(random_() % kVocab)
                                            : known[text.size() + i]);
      return;
    }
  }

 private:
  std::mutex mutex_;
  std::mt19937 random_{5};
  std::vector<std::vector<TokenId>> texts_;
};

struct Setup {
  int num_blocks = 64;
  int max_tokens = 64;
  int max_seqs = 8;
  int max_model_len = 512;
  int max_unfinished = 256;
  Mode mode = Mode::synchronous;
  bool prefix_caching = true;
};

struct Rig {
  SimulatedExecutor* device = nullptr;
  Prompter* prompter = nullptr;  // guessing
  std::unique_ptr<Engine> engine;

  explicit Rig(const Setup& setup = {}) {
    SchedulerOptions options;
    options.block_size = kBlock;
    options.num_blocks = setup.num_blocks;
    options.max_num_batched_tokens = setup.max_tokens;
    options.max_num_seqs = setup.max_seqs;
    options.max_model_len = setup.max_model_len;
    options.enable_prefix_caching = setup.prefix_caching;
    auto executor = std::make_unique<SimulatedExecutor>(
        SimulatedExecutorOptions{kVocab, kBlock, setup.num_blocks, setup.mode == Mode::asynchronous});
    device = executor.get();
    std::unique_ptr<Prompter> proposer;
    if (setup.mode == Mode::guessing) {
      options.max_draft_tokens = 5;
      proposer = std::make_unique<Prompter>();
      prompter = proposer.get();
    }
    engine =
        Engine::start(options, {setup.max_unfinished, kVocab, 0}, std::move(executor), std::move(proposer))
            .value();
  }

  // What a request is going to say.
  void learn(const std::vector<TokenId>& prompt, std::span<const TokenId> answer) {
    if (prompter) prompter->learn(prompt, answer);
  }
  std::int64_t guessed_right() const {
    const auto& accepted = engine->stats().accepted_drafts;
    return std::accumulate(accepted.begin(), accepted.end(), std::int64_t{0});
  }

  void expect_empty() {
    engine->reset_prefix_cache();
    for (int i = 0; i < 1000 && engine->stats().blocks_used + engine->stats().blocks_cached > 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const EngineStats stats = engine->stats();
    EXPECT_EQ(stats.running, 0);
    EXPECT_EQ(stats.waiting, 0);
    EXPECT_EQ(stats.blocks_used, 0);
    EXPECT_EQ(stats.unfinished, 0);
    EXPECT_EQ(stats.request_bytes, 0);
  }
};

Request request_for(std::vector<TokenId> prompt, int max_tokens) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.max_tokens = max_tokens;
  return request;
}

std::vector<TokenId> some_prompt(unsigned seed, int length) {
  std::mt19937 random(seed);
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % kVocab);
  return prompt;
}

std::vector<TokenId> expected(std::vector<TokenId> tokens, int count) {
  const std::size_t prompt = tokens.size();
  for (int i = 0; i < count; ++i) tokens.push_back(SimulatedExecutor::next(tokens, kVocab));
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

class EngineModes : public testing::TestWithParam<Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineModes,
                         testing::Values(Mode::synchronous, Mode::asynchronous, Mode::guessing));

TEST_P(EngineModes, ManyRequestsOnATightPoolGetTheirOwnTokens) {
  // The pool holds 1.2 of the longest request: chunks, preemptions and shared prefixes are certain.
  Rig rig({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
  struct Expectation {
    std::shared_ptr<Recorder> sink = std::make_shared<Recorder>();
    std::vector<TokenId> tokens;
  };
  std::vector<Expectation> all;
  std::mt19937 random(7);
  for (int i = 0; i < 64; ++i) {
    std::vector<TokenId> prompt =
        some_prompt(i % 3 == 0 ? 1 : static_cast<unsigned>(i), 5 + static_cast<int>(random() % 200));
    const int count = 1 + static_cast<int>(random() % 100);
    Expectation e;
    e.tokens = expected(prompt, count);
    rig.learn(prompt, e.tokens);
    ASSERT_TRUE(rig.engine->submit(request_for(std::move(prompt), count), e.sink).has_value());
    all.push_back(std::move(e));
  }
  for (Expectation& e : all) {
    e.sink->wait_ended(1);
    const Recorder::Record record = e.sink->record();
    EXPECT_EQ(record.tokens, e.tokens);
    ASSERT_EQ(record.ends.size(), 1u);
    EXPECT_EQ(record.ends[0].finished, FinishReason::length);
  }
  EXPECT_GT(rig.engine->stats().preemptions + rig.engine->stats().prefix_hits, 0);
  EXPECT_GE(rig.guessed_right(), GetParam() == Mode::guessing ? 300 : 0);
  rig.expect_empty();
}

TEST_P(EngineModes, AbortsAtAnyMomentFreeEverything) {
  Rig rig({.mode = GetParam()});
  std::mt19937 random(3);
  std::vector<std::shared_ptr<Recorder>> sinks;
  int aborted = 0;
  for (int i = 0; i < 200; ++i) {
    auto sink = std::make_shared<Recorder>();
    const auto id = rig.engine->submit(request_for(some_prompt(static_cast<unsigned>(i), 40), 200), sink);
    ASSERT_TRUE(id.has_value());
    if (random() % 2 == 0) sink->wait_outputs(1 + static_cast<int>(random() % 5));
    rig.engine->abort(*id);
    rig.engine->abort(*id);
    sinks.push_back(sink);
  }
  for (auto& sink : sinks) {
    sink->wait_ended(1);
    // A few are done before the abort arrives.
    const std::optional<FinishReason> end = sink->record().ends[0].finished;
    aborted += end == FinishReason::abort;
    EXPECT_THAT(end, testing::AnyOf(FinishReason::abort, FinishReason::length));
  }
  EXPECT_GT(aborted, 50);
  rig.expect_empty();
}

// Aborts its request as soon as the third token has come, on the engine's own thread.
class Leaver final : public OutputSink {
 public:
  explicit Leaver(Engine& engine) : engine_(engine) {}
  void deliver(Output&& output) noexcept override {
    id.wait(0);
    tokens += static_cast<int>(output.token_ids.size());
    if (tokens == 3 && !output.finished) engine_.abort(id);
    if (output.finished) end.set_value(*output.finished);
  }
  std::atomic<RequestId> id{0};
  std::promise<FinishReason> end;
  int tokens = 0;

 private:
  Engine& engine_;
};

TEST_P(EngineModes, AnAbortCountsBeforeTheNextStep) {
  Rig rig({.mode = GetParam()});
  auto leaver = std::make_shared<Leaver>(*rig.engine);
  const auto id = rig.engine->submit(request_for(some_prompt(1, 40), 200), leaver);
  ASSERT_TRUE(id.has_value());
  leaver->id = *id;
  leaver->id.notify_all();
  EXPECT_EQ(leaver->end.get_future().get(), FinishReason::abort);
  EXPECT_EQ(leaver->tokens, 3);
  rig.expect_empty();
}

TEST_P(EngineModes, SeveralAnswersToOnePrompt) {
  Rig rig({.mode = GetParam()});
  auto sink = std::make_shared<Recorder>();
  const std::vector<TokenId> prompt = some_prompt(1, 100);
  Request request = request_for(prompt, 10);
  request.sampling.n = 3;
  ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
  sink->wait_ended(3);
  for (int index = 0; index < 3; ++index) EXPECT_EQ(sink->record(index).tokens, expected(prompt, 10));
  EXPECT_EQ(sink->record(1).ends[0].cached_tokens, 96);  // six full blocks, computed once
  rig.expect_empty();
  EXPECT_EQ(rig.engine->stats().prompt_tokens, 300);
  EXPECT_EQ(rig.engine->stats().prompt_tokens_cached, 192);
  EXPECT_EQ(rig.engine->stats().generation_tokens, 30);
}

TEST_P(EngineModes, PromptLogprobsCoverEveryPositionOnce) {
  Rig rig({.max_tokens = 16, .mode = GetParam()});
  auto sink = std::make_shared<Recorder>();
  const std::vector<TokenId> prompt = some_prompt(1, 75);
  Request request = request_for(prompt, 3);
  request.sampling.prompt_logprobs = 0;
  request.sampling.logprobs = 0;
  ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
  sink->wait_ended(1);
  const Recorder::Record record = sink->record();
  ASSERT_EQ(record.prompt_logprobs.size(), prompt.size() - 1);
  for (std::size_t i = 1; i < prompt.size(); ++i) EXPECT_EQ(record.prompt_logprobs[i - 1].id, prompt[i]);
  EXPECT_EQ(record.logprobs.size(), 3u);
}

constexpr TokenId kEndOfText = 999;

// Tokens of one to three letters; token 999 ends a text.
std::shared_ptr<const grammar::CompiledGrammar> compiled(const std::string& regex,
                                                         grammar::Vocabulary::Encode encode = {}) {
  std::vector<std::string> tokens;
  for (int id = 0; id < kVocab; ++id) {
    const std::string letter(1, static_cast<char>('a' + id % 26));
    tokens.push_back(id < 26 ? letter : letter + std::to_string(id / 26));
  }
  auto vocabulary =
      grammar::Vocabulary::make(std::move(tokens), {}, {kEndOfText}, 1 << 20, std::move(encode)).value();
  grammar::GrammarCache cache(std::move(vocabulary), 1 << 20);
  grammar::GrammarSource source;
  source.kind = grammar::GrammarKind::regex;
  source.text = regex;
  return cache.compile(source).value();
}

// What the simulated device says under the grammar, with jumps or without; ends with the end of the text, or
// after `count` tokens.
std::vector<TokenId> expected_under(const std::shared_ptr<const grammar::CompiledGrammar>& grammar,
                                    std::vector<TokenId> tokens, int count, bool jumps = false) {
  const std::size_t prompt = tokens.size();
  grammar::Matcher matcher(grammar);
  std::vector<std::int32_t> mask((kVocab + 31) / 32);
  const auto full = [&] { return tokens.size() == prompt + static_cast<std::size_t>(count); };
  while (!full() && !matcher.is_terminated()) {
    EXPECT_TRUE(matcher.fill_mask(mask).has_value());
    tokens.push_back(SimulatedExecutor::allowed_from(SimulatedExecutor::next(tokens, kVocab), mask, kVocab));
    EXPECT_TRUE(matcher.accept(tokens.back()));
    for (const TokenId token : jumps ? matcher.forced_tokens() : std::vector<TokenId>{}) {
      if (full()) break;
      tokens.push_back(token);
      EXPECT_TRUE(matcher.accept(token));
    }
  }
  return {tokens.begin() + static_cast<std::ptrdiff_t>(prompt), tokens.end()};
}

TEST_P(EngineModes, AnswersFollowTheirGrammars) {
  Rig rig({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
  const std::vector<std::shared_ptr<const grammar::CompiledGrammar>> grammars{
      nullptr, compiled("([a-f]{3,30}|x[0-9]+y){1,4}z"), compiled("q{40}"), compiled("[a-z0-9]{0,9}")};
  struct Expectation {
    std::shared_ptr<Recorder> sink = std::make_shared<Recorder>();
    std::vector<TokenId> tokens;
  };
  std::vector<Expectation> all;
  for (unsigned i = 0; i < 48; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 90);
    request.eos_ids = {kEndOfText};
    request.grammar = grammars[i % 4];
    request.sampling.ignore_eos = i % 3 == 0;  // the end of the grammar ends the answer all the same
    Expectation e;
    e.tokens =
        request.grammar ? expected_under(request.grammar, request.prompt, 90) : expected(request.prompt, 90);
    if (!request.grammar && !request.sampling.ignore_eos)
      if (const auto end = std::ranges::find(e.tokens, kEndOfText); end != e.tokens.end())
        e.tokens.erase(end + 1, e.tokens.end());
    rig.learn(request.prompt, e.tokens);
    ASSERT_TRUE(rig.engine->submit(std::move(request), e.sink).has_value());
    all.push_back(std::move(e));
  }
  for (Expectation& e : all) {
    e.sink->wait_ended(1);
    const Recorder::Record record = e.sink->record();
    EXPECT_EQ(record.tokens, e.tokens);
    EXPECT_EQ(record.ends[0].finished,
              record.tokens.size() == 90 ? FinishReason::length : FinishReason::stop);
  }
  EXPECT_GT(rig.engine->stats().grammar_masks, 300);
  EXPECT_GE(rig.guessed_right(), GetParam() == Mode::guessing ? 100 : 0);
  rig.expect_empty();
}

TEST_P(EngineModes, AGrammarMayBeginBehindAToken) {
  Rig rig({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
  const auto grammar = compiled("[a-f0-9]{3,30}z");
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 16; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 90);
    request.sampling.ignore_eos = true;
    // Free tokens up to one that comes for the first time, or (the last request's) never.
    std::vector<TokenId> tokens = expected(request.prompt, 90);
    const TokenId mark = i < 15 ? tokens[i * 3] : TokenId{kVocab};
    request.grammar = grammar;
    request.grammar_after = mark;
    if (const auto at = std::ranges::find(tokens, mark); at != tokens.end()) {
      tokens.erase(at + 1, tokens.end());
      std::vector<TokenId> context = request.prompt;
      context.insert(context.end(), tokens.begin(), tokens.end());
      std::ranges::copy(expected_under(grammar, context, 90 - static_cast<int>(tokens.size())),
                        std::back_inserter(tokens));
    }
    rig.learn(request.prompt, tokens);
    all.emplace_back(std::make_shared<Recorder>(), std::move(tokens));
    ASSERT_TRUE(rig.engine->submit(std::move(request), all.back().first).has_value());
  }
  for (const auto& [sink, tokens] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, tokens);
  }
  rig.expect_empty();
}

// Before that token the grammar neither bans the end of the text nor asks for it.
TEST_P(EngineModes, TheTextMayEndBeforeItsGrammarBegins) {
  Rig rig({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
  const auto grammar = compiled("[a-f0-9]{3,30}z");
  int tried = 0;
  for (unsigned i = 0; i < 8; ++i) {
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), 90);
    const std::vector<TokenId> free = expected(request.prompt, 90);
    const auto first = [&](TokenId token) { return std::ranges::find(free, token) - free.begin(); };
    request.eos_ids = {free[i * 2]};
    request.grammar = grammar;
    request.grammar_after = free[40];
    const std::ptrdiff_t end = first(free[i * 2]), mark = first(free[40]);
    if (mark <= end) continue;
    ++tried;
    rig.learn(request.prompt, free);
    for (const bool ignore_eos : {false, true}) {
      request.sampling.ignore_eos = ignore_eos;
      auto sink = std::make_shared<Recorder>();
      ASSERT_TRUE(rig.engine->submit(Request(request), sink).has_value());
      sink->wait_ended(1);
      const Recorder::Record record = sink->record();
      const std::ptrdiff_t count = ignore_eos ? mark + 1 : end + 1;
      ASSERT_GE(std::ssize(record.tokens), count);
      EXPECT_TRUE(std::ranges::equal(std::span(record.tokens).first(static_cast<std::size_t>(count)),
                                     std::span(free).first(static_cast<std::size_t>(count))));
      if (ignore_eos) {
        EXPECT_GT(std::ssize(record.tokens), count);  // the grammar's text follows
      } else {
        EXPECT_EQ(std::ssize(record.tokens), count);
        EXPECT_EQ(record.ends[0].finished, FinishReason::stop);
      }
    }
  }
  EXPECT_GE(tried, 4);
  rig.expect_empty();
}

TEST_P(EngineModes, ForcedTextIsAppendedAtOnce) {
  Rig rig({.num_blocks = 24, .max_tokens = 48, .max_model_len = 320, .mode = GetParam()});
  const auto letters = [](std::string_view text) {
    std::vector<TokenId> ids;
    for (const char c : text) ids.push_back(c - 'a');
    return ids;
  };
  const auto grammar = compiled("([a-c]longforcedtext[x-z]{2}andmoreofit){1,5}", letters);
  const bool jumps = GetParam() != Mode::asynchronous;  // with a step in flight, every token is sampled
  std::vector<std::pair<std::shared_ptr<Recorder>, std::vector<TokenId>>> all;
  for (unsigned i = 0; i < 24; ++i) {
    const int count = 20 + static_cast<int>(i % 5) * 30;
    Request request = request_for(some_prompt(i, 5 + static_cast<int>(i * 37 % 150)), count);
    request.eos_ids = {kEndOfText};
    request.grammar = grammar;
    const auto& entry =
        all.emplace_back(std::make_shared<Recorder>(), expected_under(grammar, request.prompt, count, jumps));
    rig.learn(request.prompt, entry.second);
    ASSERT_TRUE(rig.engine->submit(std::move(request), entry.first).has_value());
  }
  std::int64_t tokens = 0;
  for (const auto& [sink, expectation] : all) {
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, expectation);
    tokens += static_cast<std::int64_t>(expectation.size());
  }
  const std::int64_t sampled = rig.engine->stats().grammar_masks;
  if (jumps) {
    EXPECT_LT(sampled, tokens / 2);
  } else {
    EXPECT_GE(sampled, tokens);
  }
  rig.expect_empty();
}

TEST_P(EngineModes, AGrammarWithNothingLeftEndsItsOwnRequestOnly) {
  Rig rig({.mode = GetParam()});
  auto stuck = std::make_shared<Recorder>();
  auto free = std::make_shared<Recorder>();
  Request request = request_for(some_prompt(1, 20), 50);
  request.grammar = compiled("a-b");  // no token holds a "-"
  ASSERT_TRUE(rig.engine->submit(std::move(request), stuck).has_value());
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(2, 20), 50), free).has_value());
  stuck->wait_ended(1);
  free->wait_ended(1);
  EXPECT_EQ(stuck->record().ends[0].finished, FinishReason::error);
  EXPECT_FALSE(stuck->record().ends[0].error.empty());
  EXPECT_EQ(free->record().tokens, expected(some_prompt(2, 20), 50));
  rig.expect_empty();
}

TEST_P(EngineModes, StopTokensEndAnAnswer) {
  Rig rig({.mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(1, 20);
  const std::vector<TokenId> tokens = expected(prompt, 8);
  rig.learn(prompt, tokens);
  auto sink = std::make_shared<Recorder>();
  Request request = request_for(prompt, 100);
  request.sampling.stop_token_ids = {tokens[5]};
  ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
  sink->wait_ended(1);
  const Recorder::Record record = sink->record();
  EXPECT_EQ(record.tokens, std::vector<TokenId>(tokens.begin(), tokens.begin() + 6));
  EXPECT_EQ(record.ends[0].finished, FinishReason::stop);
  EXPECT_EQ(record.ends[0].stop_token, tokens[5]);
}

TEST_P(EngineModes, BrokenLogitsEndTheirOwnRequestOnly) {
  Rig rig({.mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(1, 20);
  const std::vector<TokenId> tokens = expected(prompt, 5);
  rig.device->break_after(tokens[2]);
  rig.learn(prompt, tokens);
  auto broken = std::make_shared<Recorder>();
  auto healthy = std::make_shared<Recorder>();
  ASSERT_TRUE(rig.engine->submit(request_for(prompt, 20), broken).has_value());
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(2, 20), 2), healthy).has_value());
  broken->wait_ended(1);
  healthy->wait_ended(1);
  EXPECT_EQ(broken->record().tokens, std::vector<TokenId>(tokens.begin(), tokens.begin() + 3));
  EXPECT_EQ(broken->record().ends[0].finished, FinishReason::error);
  EXPECT_EQ(healthy->record().ends[0].finished, FinishReason::length);
  EXPECT_TRUE(rig.engine->stats().healthy);
  rig.expect_empty();
}

TEST_P(EngineModes, ADeadDeviceEndsEverythingAndSaysSo) {
  Rig rig({.mode = GetParam()});
  auto sink = std::make_shared<Recorder>();
  rig.device->fail();
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(1, 20), 20), sink).has_value());
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().ends[0].finished, FinishReason::error);
  for (int i = 0; i < 1000 && rig.engine->stats().healthy; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_FALSE(rig.engine->stats().healthy);
  EXPECT_EQ(rig.engine->submit(request_for(some_prompt(1, 20), 20), sink).error().code,
            ErrorCode::unavailable);
}

TEST(Engine, RefusesWhatCannotBeServed) {
  Rig rig({.num_blocks = 16, .max_model_len = 512});
  auto sink = std::make_shared<Recorder>();
  const auto error = [&](Request request) { return rig.engine->submit(std::move(request), sink).error(); };
  EXPECT_EQ(error(request_for({}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for({kVocab}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for({-1}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for(some_prompt(1, 512), 5)).field, "prompt");
  EXPECT_EQ(error(request_for(some_prompt(1, 300), 5)).field, "max_tokens");  // 19 blocks of 16
}

TEST(Engine, BoundsUnfinishedAnswers) {
  Rig rig({.num_blocks = 600, .max_model_len = 4096, .max_unfinished = 2});
  auto sink = std::make_shared<Recorder>();
  Request three = request_for(some_prompt(1, 20), 4000);
  three.sampling.n = 3;
  EXPECT_EQ(rig.engine->submit(std::move(three), sink).error().field, "n");
  Request two = request_for(some_prompt(1, 20), 4000);
  two.sampling.n = 2;
  const auto id = rig.engine->submit(std::move(two), sink);
  ASSERT_TRUE(id.has_value());
  const auto refused = rig.engine->submit(request_for(some_prompt(1, 20), 5), sink);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  rig.engine->abort(*id);
  sink->wait_ended(2);
  for (int i = 0; i < 1000; ++i) {  // the places come free just after the last output
    if (rig.engine->submit(request_for(some_prompt(1, 20), 5), std::make_shared<Recorder>()).has_value())
      return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  FAIL() << "places were not given back";
}

TEST(Engine, DrainFinishesWhatWasAccepted) {
  Rig rig;
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 20; ++i) {
    sinks.push_back(std::make_shared<Recorder>());
    ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(i, 30), 50), sinks.back()).has_value());
  }
  rig.engine->drain();
  for (auto& sink : sinks) EXPECT_EQ(sink->record().tokens.size(), 50u);
  EXPECT_EQ(rig.engine->submit(request_for(some_prompt(1, 20), 5), sinks[0]).error().code,
            ErrorCode::unavailable);
}

TEST(Engine, StoppingAbortsWhatIsLeft) {
  auto sink = std::make_shared<Recorder>();
  {
    Rig rig;
    ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(1, 30), 400), sink).has_value());
  }
  ASSERT_EQ(sink->record().ends.size(), 1u);
}

}  // namespace
}  // namespace octavo
