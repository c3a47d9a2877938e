#include "engine/loop/engine.h"

#include <gmock/gmock.h>

#include <atomic>
#include <functional>
#include <future>

#include "base/testing/eventually.h"
#include "engine/testing/rig.h"

namespace octavo {
namespace {

INSTANTIATE_TEST_SUITE_P(Modes, EngineModes, EngineModes::all(), EngineModes::name);

TEST_P(EngineModes, ManyRequestsOnATightPoolGetTheirOwnTokens) {
  // The pool is 1.2 times as large as the longest request, so there are chunks, preemptions and shared
  // prefixes.
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
  std::int64_t preemptions = 0;
  for (Expectation& e : all) {
    e.sink->wait_ended(1);
    const Recorder::Record record = e.sink->record();
    EXPECT_EQ(record.tokens, e.tokens);
    ASSERT_EQ(record.ends.size(), 1u);
    EXPECT_EQ(record.ends[0].finished, FinishReason::length);
    preemptions += record.ends[0].preemptions;
  }
  EXPECT_GT(rig.engine->own_stats().preemptions + rig.engine->own_stats().prefix_cache.hits, 0);
  EXPECT_GE(rig.accepted_drafts(), rig.speculates() ? 300 : 0);
  rig.expect_empty();
  // A preempted sequence may be stopped before it runs again.
  EXPECT_LE(preemptions, rig.engine->own_stats().preemptions);
  if (GetParam() == Mode::synchronous) {
    EXPECT_EQ(preemptions, rig.engine->own_stats().preemptions);
  }
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
    // Some requests finish before the abort arrives.
    const std::optional<FinishReason> end = sink->record().ends[0].finished;
    aborted += end == FinishReason::abort;
    EXPECT_THAT(end, testing::AnyOf(FinishReason::abort, FinishReason::length));
  }
  EXPECT_GT(aborted, 0);
  rig.expect_empty();
}

// Aborts its request at the third token, on the engine thread.
class Leaver final : public OutputSink {
 public:
  explicit Leaver(Engine& engine) : engine_(engine) {}
  void deliver(Output&& output) noexcept override {
    id.wait(0);
    tokens += static_cast<int>(output.token_ids.size());
    if (tokens >= 3 && !output.finished && std::exchange(tokens_at_abort, tokens) == 0) engine_.abort(id);
    if (output.finished) end.set_value(*output.finished);
  }
  std::atomic<RequestId> id{0};
  std::promise<FinishReason> end;
  int tokens = 0;
  int tokens_at_abort = 0;

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
  EXPECT_EQ(leaver->tokens, leaver->tokens_at_abort);
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
  EXPECT_EQ(sink->record(1).ends[0].cached_tokens, 96);  // six full blocks, which were computed once
  rig.expect_empty();
  EXPECT_EQ(rig.engine->own_stats().tokens.prompt, 300);
  EXPECT_EQ(rig.engine->own_stats().tokens.prompt_cached, 192);
  EXPECT_EQ(rig.engine->own_stats().tokens.generation, 30);
  // The sum contains the uncached prompt tokens and the output tokens.
  EXPECT_EQ(rig.engine->own_stats().step_tokens.sum(), 300 - 192 + 30);
  StepRecord all;
  for (const StepRecord& step : rig.engine->own_stats().recent_steps) {
    all.prompt_tokens += step.prompt_tokens;
    all.answer_tokens += step.answer_tokens;
    all.number = std::max(all.number, step.number);
  }
  EXPECT_EQ(all.prompt_tokens, 300 - 192);
  EXPECT_EQ(all.answer_tokens, 27);
  EXPECT_GE(all.number, rig.drafting ? 2 : 10);
}

TEST_P(EngineModes, ListedTokensOfThePromptAreReportedFromTheirStart) {
  Rig rig({.max_tokens = 16, .mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(1, 75);
  const auto ask = [&](int rows) {
    Request request = request_for(prompt, 3);
    request.sampling.logprobs.prompt_start = 10;
    request.sampling.logprobs.prompt_token_ids.assign(static_cast<std::size_t>(rows), {1, 2});
    return request;
  };
  auto sink = std::make_shared<Recorder>();
  EXPECT_EQ(rig.engine->submit(ask(63), sink).error().field, "prompt_logprob_token_ids");
  ASSERT_TRUE(rig.engine->submit(ask(64), sink).has_value());
  sink->wait_ended(1);
  const Recorder::Record record = sink->record();
  ASSERT_EQ(record.prompt_logprobs.size(), 64U);
  for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(record.prompt_logprobs[i].id, prompt[11 + i]);
}

TEST_P(EngineModes, PromptLogprobsCoverEveryPositionOnce) {
  Rig rig({.max_tokens = 16, .mode = GetParam()});
  auto sink = std::make_shared<Recorder>();
  const std::vector<TokenId> prompt = some_prompt(1, 75);
  Request request = request_for(prompt, 3);
  request.sampling.logprobs.prompt = 0;
  request.sampling.logprobs.output = 0;
  ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
  sink->wait_ended(1);
  const Recorder::Record record = sink->record();
  ASSERT_EQ(record.prompt_logprobs.size(), prompt.size() - 1);
  for (std::size_t i = 1; i < prompt.size(); ++i) EXPECT_EQ(record.prompt_logprobs[i - 1].id, prompt[i]);
  EXPECT_EQ(record.logprobs.size(), 3u);
}

// Three cases: the model reasons from the start, it starts to reason later, or the prompt has used the
// whole budget.
TEST_P(EngineModes, ThoughtsEndWithTheirBudget) {
  Rig rig({.mode = GetParam()});
  const std::vector<TokenId> prompt = some_prompt(5, 20);
  const std::vector<TokenId> free = expected(prompt, 12);
  const TokenId end = (free[0] + 1) % kVocab;
  const auto ending_at = [&](std::size_t length) {
    std::vector<TokenId> text = prompt;
    text.insert(text.end(), free.begin(), free.begin() + static_cast<std::ptrdiff_t>(length));
    text.push_back(end);
    const std::vector<TokenId> rest = expected(text, 12 - static_cast<int>(length) - 1);
    text.insert(text.end(), rest.begin(), rest.end());
    return std::vector<TokenId>(text.begin() + std::ssize(prompt), text.end());
  };
  struct Case {
    ThinkingBudget budget;
    std::size_t ends_at;
  };
  const TokenId never = kVocab - 1;
  for (const Case& c : {Case{{never, end, 5, 0}, 5}, Case{{free[2], end, 4, {}}, 7},
                        Case{{never, end, 3, 3}, 0}, Case{{free[1], end, 0, {}}, 2}}) {
    Request request = request_for(prompt, 12);
    request.thinking_budget = c.budget;
    rig.learn(prompt, free);
    auto sink = std::make_shared<Recorder>();
    ASSERT_TRUE(rig.engine->submit(std::move(request), sink).has_value());
    sink->wait_ended(1);
    EXPECT_EQ(sink->record().tokens, ending_at(c.ends_at)) << c.ends_at;
  }
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
  EXPECT_TRUE(rig.engine->own_stats().condition.healthy);
  rig.expect_empty();
}

TEST_P(EngineModes, ADeadDeviceEndsEverythingAndSaysSo) {
  Rig rig({.mode = GetParam()});
  auto sink = std::make_shared<Recorder>();
  rig.device->fail();
  ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(1, 20), 20), sink).has_value());
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().ends[0].finished, FinishReason::error);
  EXPECT_TRUE(eventually([&] { return !rig.engine->own_stats().condition.healthy; }));
  EXPECT_EQ(rig.engine->submit(request_for(some_prompt(1, 20), 20), sink).error().code,
            ErrorCode::unavailable);
}

// Fails in the first step, after the test allows it.
class FailingExecutor final : public Executor {
 public:
  bool asynchronous() const override { return false; }
  Result<> forward(const Batch&) override {
    began.set_value();
    return {};
  }
  Result<> sample(std::span<const std::int32_t>, std::span<const SampleRow>) override { return {}; }
  Result<std::span<SampledToken>> collect() override {
    may_fail.get_future().wait();
    return failure(ErrorCode::internal, "the device failed");
  }

  std::promise<void> began, may_fail;
};

TEST(Engine, ARequestThatComesWhileTheDeviceFailsEnds) {
  auto owned = std::make_unique<FailingExecutor>();
  FailingExecutor& device = *owned;
  SchedulerOptions options;
  options.num_blocks = 64;
  options.max_model_len = 512;
  EngineInfo info;
  info.vocab_size = kVocab;
  const auto engine = Engine::start(options, info, {.executor = std::move(owned)}).value();
  auto first = std::make_shared<Recorder>(), second = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 20), first).has_value());
  device.began.get_future().wait();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 20), second).has_value());
  device.may_fail.set_value();
  for (const auto& sink : {first, second}) {
    ASSERT_TRUE(sink->wait_ended(1, std::chrono::seconds(60)));
    EXPECT_EQ(sink->record().ends[0].finished, FinishReason::error);
  }
}

TEST(Engine, AStepThatWaitsForNothingIsSeen) {
  auto owned = std::make_unique<FailingExecutor>();
  FailingExecutor& device = *owned;
  SchedulerOptions options;
  options.num_blocks = 64;
  options.max_model_len = 512;
  EngineInfo info;
  info.vocab_size = kVocab;
  EngineParts parts{.executor = std::move(owned)};
  parts.watch = {.quiet_us = 50'000, .device_step_us = 50'000};
  const auto engine = Engine::start(options, info, std::move(parts)).value();
  auto sink = std::make_shared<Recorder>();
  const auto hangs = [&] { return engine->own_stats().condition.hangs; };
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 20), sink).has_value());
  EXPECT_TRUE(eventually(hangs));
  device.may_fail.set_value();
  EXPECT_TRUE(eventually(std::not_fn(hangs)));
}

TEST(Engine, RefusesWhatCannotBeServed) {
  Rig rig({.num_blocks = 16, .max_model_len = 512});
  auto sink = std::make_shared<Recorder>();
  const auto error = [&](Request request) { return rig.engine->submit(std::move(request), sink).error(); };
  EXPECT_EQ(error(request_for({}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for({kVocab}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for({-1}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for(some_prompt(1, 512), 5)).field, "prompt");
  // 19 blocks are needed, but there are only 16
  EXPECT_EQ(error(request_for(some_prompt(1, 300), 5)).field, "max_tokens");
}

// Two answers may wait while one runs.
TEST(Engine, BoundsAnswersThatWait) {
  Rig rig({.num_blocks = 600, .max_seqs = 1, .max_model_len = 4096, .max_queued = 2});
  auto sink = std::make_shared<Recorder>();
  std::promise<void> paused;  // so that no answer ends before the engine gets the last request
  rig.engine->pause(PauseMode::keep, [&](const Result<>&) { paused.set_value(); });
  paused.get_future().wait();
  Request four = request_for(some_prompt(1, 20), 4000);
  four.sampling.n = 4;
  EXPECT_EQ(rig.engine->submit(std::move(four), sink).error().field, "n");
  Request three = request_for(some_prompt(1, 20), 4000);
  three.sampling.n = 3;
  const auto id = rig.engine->submit(std::move(three), sink);
  ASSERT_TRUE(id.has_value());
  const auto refused = rig.engine->submit(request_for(some_prompt(1, 20), 5), sink);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::resource_exhausted);
  rig.engine->abort(*id);
  rig.engine->resume();
  sink->wait_ended(3);
  EXPECT_TRUE(eventually([&] {  // slots are freed only after the last output
    return rig.engine->submit(request_for(some_prompt(1, 20), 5), std::make_shared<Recorder>()).has_value();
  }));
}

TEST(Engine, ASmallQueueLetsTheWholeBatchRun) {
  Rig rig({.max_seqs = 8, .max_queued = 0});
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 8; ++i) {
    sinks.push_back(std::make_shared<Recorder>());
    ASSERT_TRUE(rig.engine->submit(request_for(some_prompt(i, 20), 50), sinks.back()).has_value());
  }
  for (auto& sink : sinks) sink->wait_ended(1);
  for (auto& sink : sinks) EXPECT_EQ(sink->record().tokens.size(), 50u);
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
