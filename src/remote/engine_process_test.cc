#include "remote/engine_process.h"

#include <signal.h>
#include <sys/wait.h>

#include <filesystem>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "engine/testing/rig.h"

namespace octavo::remote {
namespace {

using namespace std::chrono_literals;

EngineProcessOptions simulated(std::vector<std::string> flags) {
  EngineProcessOptions options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine";
  options.command = {"simulated_engine"};
  options.command.insert(options.command.end(), flags.begin(), flags.end());
  return options;
}

// Returns the engine's process id. The test must stop if the engine has no process, because kill(-1) signals
// every process.
pid_t signal_engine(const EngineProcess& engine, int signal) {
  const pid_t pid = engine.pid();
  CHECK(pid > 0);
  ::kill(pid, signal);
  return pid;
}

void kill_engine(const EngineProcess& engine, int signal = SIGKILL) {
  const pid_t pid = signal_engine(engine, signal);
  ASSERT_TRUE(eventually([&] { return engine.pid() > 0 && engine.pid() != pid; }));
}

bool no_child_is_left() { return waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD; }

TEST(EngineProcess, TheFiguresOfAnAnswerArriveWithIt) {
  auto engine = EngineProcess::start(simulated({"--step-us=0"})).value();
  constexpr int kTokens = 7;
  for (int answers = 1; answers <= 20; ++answers) {
    auto sink = std::make_shared<Recorder>();
    ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 12), kTokens), sink).has_value());
    ASSERT_TRUE(sink->wait_ended(1, 60s));
    const EngineStats stats = engine->stats()[0];
    EXPECT_EQ(stats.tokens.generation, answers * kTokens);
    EXPECT_EQ(stats.tokens.prompt, answers * 12);
  }
}

TEST(EngineProcess, StreamsGoOnAfterTheEngineIsKilled) {
  auto engine = EngineProcess::start(simulated({"--step-us=500"})).value();
  EXPECT_EQ(engine->info().vocab_size, kVocab);
  EXPECT_EQ(engine->info().max_model_len, 512);
  struct Stream {
    std::vector<TokenId> prompt;
    int count;
    std::shared_ptr<Recorder> sink = std::make_shared<Recorder>();
  };
  std::vector<Stream> streams;
  for (int i = 0; i < 16; ++i) {
    Stream& s = streams.emplace_back(some_prompt(static_cast<unsigned>(i), 5 + 7 * i), 100 + 12 * i);
    Request request = request_for(s.prompt, s.count);
    request.sampling.n = 1 + i % 2;
    ASSERT_TRUE(engine->submit(std::move(request), s.sink).has_value());
  }
  Request guided = request_for(some_prompt(99, 20), 400);
  guided.grammar = {.kind = grammar::GrammarKind::regex, .text = "[a-z]{300}"};
  guided.eos_ids = {kVocab - 1};
  auto letters = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(std::move(guided), letters).has_value());
  for (int kills = 0; kills < 4; ++kills) {
    EXPECT_TRUE(eventually([&] { return std::ssize(letters->record().tokens) > 60 * kills; }));
    kill_engine(*engine);
  }
  for (Stream& s : streams) {
    const int n = 1 + static_cast<int>(&s - streams.data()) % 2;
    ASSERT_TRUE(s.sink->wait_ended(n, 60s));
    for (int index = 0; index < n; ++index) {
      const Recorder::Record record = s.sink->record(index);
      EXPECT_EQ(record.tokens, expected(s.prompt, s.count));
      ASSERT_EQ(record.ends.size(), 1u);
      EXPECT_EQ(record.ends[0].finished, FinishReason::length);
      EXPECT_GT(record.ends[0].times.arrived_us, 0);
      EXPECT_LE(record.ends[0].times.scheduled_us, record.ends[0].times.first_token_us);
    }
  }
  ASSERT_TRUE(letters->wait_ended(1, 60s));
  const Recorder::Record record = letters->record();
  ASSERT_EQ(record.tokens.size(), 301u) << "and the end of the text";
  std::vector<TokenId> text = some_prompt(99, 20);
  for (int i = 0; i < 300; ++i) {
    const TokenId next = SimulatedExecutor::next(text, kVocab);
    text.push_back(next < 26 ? next : 0);  // the first letter that the grammar allows
    EXPECT_EQ(record.tokens[static_cast<std::size_t>(i)], text.back()) << i;
  }
  EXPECT_TRUE(eventually([&] { return engine->stats()[0].requests.unfinished == 0; }));
  engine.reset();
  EXPECT_TRUE(no_child_is_left());
}

TEST(EngineProcess, OtherWorkIsDoneWhileItStarts) {
  int calls = 0;
  const auto engine = EngineProcess::start(simulated({}), [&]() -> Result<> {
    ++calls;
    return {};
  });
  EXPECT_TRUE(engine.has_value());
  EXPECT_EQ(calls, 1);
}

TEST(EngineProcess, AnErrorOfTheOtherWorkEndsTheStart) {
  const auto engine = EngineProcess::start(
      simulated({}), []() -> Result<> { return failure(ErrorCode::corrupt, "the tokenizer is damaged"); });
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().message, "the tokenizer is damaged");
  EXPECT_TRUE(no_child_is_left());
}

TEST(EngineProcess, AHungEngineIsReplaced) {
  EngineProcessOptions options = simulated({"--step-us=500"});
  options.hung_after_ms = 3000;  // a busy machine may be silent for long
  const auto engine = EngineProcess::start(std::move(options)).value();
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 200), sink).has_value());
  sink->wait_outputs(5);
  kill_engine(*engine, SIGSTOP);
  ASSERT_TRUE(sink->wait_ended(1, 60s));
  EXPECT_EQ(sink->record().tokens, expected(some_prompt(1, 20), 200));
}

Result<> outcome(const std::function<void(EngineClient::Done)>& call) {
  std::promise<Result<>> ended;
  call([&](Result<> result) { ended.set_value(std::move(result)); });
  return ended.get_future().get();
}

void expect_answer(EngineProcess& engine, unsigned seed, int cached) {
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(engine.submit(request_for(some_prompt(seed, 50), 20), sink).has_value());
  ASSERT_TRUE(sink->wait_ended(1, 60s));
  EXPECT_EQ(sink->record().tokens, expected(some_prompt(seed, 50), 20));
  EXPECT_EQ(sink->record().ends[0].cached_tokens, cached);
}

TEST(EngineProcess, ItSleepsWhenAllHasEndedAndWakesWithoutItsCache) {
  for (const int level : {1, 2}) {
    const auto engine = EngineProcess::start(simulated({"--step-us=500"})).value();
    expect_answer(*engine, 1, 0);
    expect_answer(*engine, 1, 48);
    auto running = std::make_shared<Recorder>();
    ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 200), running).has_value());
    running->wait_outputs(3);
    EXPECT_TRUE(outcome([&](auto done) { engine->sleep(level, done); }));
    EXPECT_EQ(running->record().tokens, expected(some_prompt(2, 20), 200)) << "it was finished first";
    EXPECT_EQ(engine->stats()[0].condition.sleep_level, level);
    EXPECT_EQ(engine->pid() > 0, level == 1);
    EXPECT_TRUE(engine->stats()[0].condition.healthy);
    EXPECT_EQ(engine->submit(request_for(some_prompt(1, 20), 5), running).error().code,
              ErrorCode::unavailable);
    EXPECT_FALSE(outcome([&](auto done) { engine->sleep(level, done); })) << "it sleeps already";
    EXPECT_TRUE(outcome([&](auto done) { engine->wake_up(done); }));
    EXPECT_EQ(engine->stats()[0].condition.sleep_level, 0);
    EXPECT_TRUE(outcome([&](auto done) { engine->wake_up(done); })) << "it is awake";
    expect_answer(*engine, 1, 0);
  }
  EXPECT_TRUE(no_child_is_left());
}

TEST(EngineProcess, ItPausesAndStaysSoWhenTheEngineDies) {
  const auto engine = EngineProcess::start(simulated({"--step-us=500"})).value();
  auto running = std::make_shared<Recorder>(), waiting = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 300), running).has_value());
  running->wait_outputs(3);
  EXPECT_TRUE(outcome([&](auto done) { engine->pause(PauseMode::keep, done); }));
  EXPECT_TRUE(engine->stats()[0].condition.paused);
  ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 20), waiting).has_value());
  const std::size_t count = running->record().tokens.size();
  EXPECT_EQ(engine->stats()[0].tokens.generation, count) << "metrics are as new as the pause";
  for (int deaths = 0; deaths < 3; ++deaths) {
    kill_engine(*engine, SIGKILL);
    EXPECT_TRUE(outcome([&](auto done) { engine->pause(PauseMode::keep, done); })) << "the new one, again";
    EXPECT_EQ(running->record().tokens.size(), count);
  }
  engine->resume();
  EXPECT_FALSE(engine->stats()[0].condition.paused);
  for (const auto& sink : {running, waiting}) ASSERT_TRUE(sink->wait_ended(1, 60s));
  EXPECT_EQ(running->record().tokens, expected(some_prompt(1, 20), 300));
  EXPECT_EQ(waiting->record().tokens, expected(some_prompt(2, 20), 20));
}

std::vector<TokenId> completed_with(TokenId added, std::vector<TokenId> text, std::size_t count) {
  const std::size_t begin = text.size();
  while (text.size() < begin + count)
    text.push_back((SimulatedExecutor::next(text, kVocab) + added) % kVocab);
  return {text.begin() + static_cast<std::ptrdiff_t>(begin), text.end()};
}

EngineProcessOptions with_weights(std::vector<std::string> flags) {
  EngineProcessOptions options = simulated(std::move(flags));
  options.weights_flag = "--weights";
  options.check_weights = [](const std::string& path) -> Result<> {
    if (path == "of another model") return invalid("weights_path", "{}", path);
    return {};
  };
  return options;
}

Result<> reload(EngineProcess& engine, const std::string& path) {
  return outcome([&](auto done) { engine.reload_weights(path, std::move(done)); });
}

std::vector<TokenId> ask(EngineProcess& engine, std::vector<TokenId> prompt, int count) {
  auto sink = std::make_shared<Recorder>();
  EXPECT_TRUE(engine.submit(request_for(std::move(prompt), count), sink));
  sink->wait_ended(1);
  return sink->record().tokens;
}

TEST(EngineProcess, OtherWeightsTakeThePlaceOfTheModelsWhileStreamsGoOn) {
  const auto engine = EngineProcess::start(with_weights({"--step-us=4000"})).value();
  const std::vector<TokenId> prompt = some_prompt(1, 20);
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(prompt, 400), sink));
  sink->wait_outputs(5);
  EXPECT_TRUE(reload(*engine, "7"));
  sink->wait_ended(1);
  const std::vector<TokenId> tokens = sink->record().tokens;
  ASSERT_EQ(tokens.size(), 400U);
  const auto changed = std::ranges::mismatch(tokens, completed_with(0, prompt, 400)).in1;
  EXPECT_GT(changed - tokens.begin(), 4);
  ASSERT_NE(changed, tokens.end());
  std::vector<TokenId> so_far = prompt;
  so_far.insert(so_far.end(), tokens.begin(), changed);
  EXPECT_EQ(std::vector<TokenId>(changed, tokens.end()),
            completed_with(7, so_far, static_cast<std::size_t>(tokens.end() - changed)));

  EXPECT_EQ(ask(*engine, prompt, 30), completed_with(7, prompt, 30));
  kill_engine(*engine);
  EXPECT_EQ(ask(*engine, prompt, 30), completed_with(7, prompt, 30)) << "the next engine has them, too";
  EXPECT_TRUE(reload(*engine, ""));
  EXPECT_EQ(ask(*engine, prompt, 30), completed_with(7, prompt, 30)) << "those in use were read anew";
}

TEST(EngineProcess, WeightsThatCannotBeReadLeaveThoseBeforeInUse) {
  const auto engine = EngineProcess::start(with_weights({"--step-us=500"})).value();
  const std::vector<TokenId> prompt = some_prompt(1, 20);
  ASSERT_TRUE(reload(*engine, "3"));
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(prompt, 400), sink));
  sink->wait_outputs(5);
  const pid_t pid = engine->pid();
  EXPECT_EQ(reload(*engine, "of another model").error().field, "weights_path");
  EXPECT_EQ(engine->pid(), pid);
  EXPECT_EQ(reload(*engine, "broken").error().message, "the model is broken");
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, completed_with(3, prompt, 400));
}

TEST(EngineProcess, WhatPausesStaysSoWhenWeightsAreReadAndSleepersReadNone) {
  const auto engine = EngineProcess::start(with_weights({"--step-us=500"})).value();
  ASSERT_TRUE(outcome([&](auto done) { engine->pause(PauseMode::keep, std::move(done)); }));
  auto sink = std::make_shared<Recorder>();
  const std::vector<TokenId> prompt = some_prompt(1, 20);
  ASSERT_TRUE(engine->submit(request_for(prompt, 30), sink));
  EXPECT_TRUE(reload(*engine, "5"));
  EXPECT_FALSE(sink->wait_ended(1, 0s));
  engine->resume();
  sink->wait_ended(1);
  EXPECT_EQ(sink->record().tokens, completed_with(5, prompt, 30));
  for (const int level : {1, 2}) {
    ASSERT_TRUE(outcome([&](auto done) { engine->sleep(level, std::move(done)); }));
    EXPECT_EQ(reload(*engine, "6").error().code, ErrorCode::unavailable);
    ASSERT_TRUE(outcome([&](auto done) { engine->wake_up(std::move(done)); }));
  }
  EXPECT_EQ(ask(*engine, prompt, 30), completed_with(5, prompt, 30));
}

TEST(EngineProcess, WhoWaitsForWeightsHearsOfTheEnd) {
  auto engine = EngineProcess::start(with_weights({"--step-us=500"})).value();
  std::promise<Result<>> ended;
  engine->reload_weights("1", [&](Result<> result) { ended.set_value(std::move(result)); });
  engine.reset();
  (void)ended.get_future().get();  // either the load or the death of the process may come first
  auto fixed = EngineProcess::start(simulated({"--step-us=500"})).value();
  EXPECT_EQ(reload(*fixed, "1").error().code, ErrorCode::unsupported);
}

TEST(EngineProcess, AnEngineThatDiesAsleepWakesAllTheSame) {
  const auto engine = EngineProcess::start(simulated({"--step-us=500"})).value();
  EXPECT_TRUE(outcome([&](auto done) { engine->sleep(1, done); }));
  kill_engine(*engine);
  EXPECT_EQ(engine->stats()[0].condition.sleep_level, 1);
  EXPECT_TRUE(outcome([&](auto done) { engine->wake_up(done); }));
  expect_answer(*engine, 1, 0);
}

TEST(EngineProcess, ASleepThatHasNotBegunIsTakenBack) {
  for (const int level : {1, 2}) {
    const auto engine = EngineProcess::start(simulated({"--step-us=1000"})).value();
    const pid_t pid = engine->pid();
    auto running = std::make_shared<Recorder>();
    ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 400), running).has_value());
    // The request cannot end, so no sleep begins.
    ASSERT_TRUE(outcome([&](auto done) { engine->pause(PauseMode::keep, done); }));
    for (int i = 0; i < 20; ++i) {
      std::promise<Result<>> ended;
      engine->sleep(level, [&](Result<> result) { ended.set_value(std::move(result)); });
      EXPECT_TRUE(outcome([&](auto done) { engine->wake_up(done); }));
      const Result<> slept = ended.get_future().get();
      ASSERT_FALSE(slept);
      EXPECT_EQ(slept.error().message, "the engine was woken up before it fell asleep");
    }
    EXPECT_EQ(running->record().ends.size(), 0u) << "nobody has waited for it";
    engine->resume();
    expect_answer(*engine, 1, 0);
    EXPECT_TRUE(outcome([&](auto done) { engine->sleep(level, done); }));
    EXPECT_EQ(running->record().tokens, expected(some_prompt(2, 20), 400));
    EXPECT_EQ(engine->pid(), level == 1 ? pid : -1);
    EXPECT_TRUE(outcome([&](auto done) { engine->wake_up(done); }));
    expect_answer(*engine, 1, 0);
  }
}

TEST(EngineProcess, SleepersAndWakersAreAllHeard) {
  for (const int level : {1, 2}) {
    const auto engine = EngineProcess::start(simulated({"--step-us=500"})).value();
    for (int i = 0; i < 12; ++i) {
      std::promise<Result<>> ended;
      engine->sleep(level, [&](Result<> result) { ended.set_value(std::move(result)); });
      std::this_thread::sleep_for(std::chrono::microseconds(300 * i));
      EXPECT_TRUE(outcome([&](auto done) { engine->wake_up(done); }));
      (void)ended.get_future().get();  // either the sleep or the wake-up may come first
      expect_answer(*engine, static_cast<unsigned>(i), 0);
    }
  }
}

TEST(EngineProcess, WithoutAProcessAdaptersAreRefusedAndTheEndIsHeard) {
  const auto engine = EngineProcess::start(simulated({})).value();
  EXPECT_TRUE(outcome([&](auto done) { engine->sleep(2, done); }));
  const Result<> loaded = outcome([&](auto done) { engine->load_adapter({.name = "a", .path = "b"}, done); });
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::unavailable);
  EXPECT_FALSE(outcome([&](auto done) { engine->unload_adapter("a", done); }));
  engine->drain();
  const Result<> woken = outcome([&](auto done) { engine->wake_up(done); });
  ASSERT_FALSE(woken) << "it is shutting down";
  EXPECT_EQ(woken.error().code, ErrorCode::unavailable);
}

TEST(EngineProcess, WhoWaitsForSleepHearsOfTheEnd) {
  auto engine = EngineProcess::start(simulated({"--step-us=20000"})).value();
  auto running = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 400), running).has_value());
  std::promise<Result<>> ended;
  engine->sleep(2, [&](Result<> result) { ended.set_value(std::move(result)); });
  engine.reset();
  EXPECT_FALSE(ended.get_future().get());
  EXPECT_TRUE(no_child_is_left());
  EXPECT_FALSE(outcome([&](auto done) { EngineProcess::start(simulated({})).value()->sleep(3, done); }))
      << "there is no level 3";
}

TEST(EngineProcess, ARequestThatKillsEnginesEndsAndTheServerGoesOn) {
  const auto engine = EngineProcess::start(simulated({"--step-us=200", "--die-of=7"})).value();
  auto deadly = std::make_shared<Recorder>(), good = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 400), good).has_value());
  good->wait_outputs(3);
  ASSERT_TRUE(engine->submit(request_for({7, 1, 2}, 10), deadly).has_value());
  ASSERT_TRUE(deadly->wait_ended(1, 60s));
  EXPECT_EQ(deadly->record().ends[0].finished, FinishReason::error);
  EXPECT_TRUE(deadly->record().ends[0].error);
  auto later = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 10), later).has_value());
  ASSERT_TRUE(later->wait_ended(1, 60s));
  EXPECT_EQ(later->record().tokens, expected(some_prompt(2, 20), 10));
  ASSERT_TRUE(good->wait_ended(1, 60s));
  EXPECT_TRUE(eventually([&] { return engine->stats()[0].requests.unfinished == 0; }));
}

// A request that kills engines repeatedly ends, even if each of them was old.
TEST(EngineProcess, ARequestThatKillsOldEnginesEnds) {
  EngineProcessOptions options = simulated({"--step-us=200", "--die-of=7"});
  options.young_ms = 0;
  const auto engine = EngineProcess::start(std::move(options)).value();
  auto deadly = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for({7, 1, 2}, 10), deadly).has_value());
  ASSERT_TRUE(deadly->wait_ended(1, 60s));
  EXPECT_EQ(deadly->record().ends[0].finished, FinishReason::error);
  expect_answer(*engine, 2, 0);
}

// It is unknown when the other hosts return. So new requests are rejected, and earlier ones continue later.
TEST(EngineProcess, WhileRanksOfOtherHostsAreAwayRequestsAreRefused) {
  EngineProcessOptions options = simulated({"--step-us=500"});
  options.on_several_hosts = true;
  const std::string program = options.program;
  const ScratchDirectory folder;
  options.program = folder / "engine";
  std::filesystem::create_symlink(program, folder / "engine");
  const auto engine = EngineProcess::start(std::move(options)).value();
  EXPECT_EQ(engine->stats()[0].condition.presence, EnginePresence::up);
  auto running = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 300), running).has_value());
  running->wait_outputs(3);
  std::filesystem::remove(folder / "engine");  // the next starts fail, for about three seconds
  signal_engine(*engine, SIGKILL);
  ASSERT_TRUE(eventually([&] { return engine->stats()[0].condition.presence == EnginePresence::away; }));
  const auto refused = engine->submit(request_for(some_prompt(1, 20), 5), std::make_shared<Recorder>());
  std::filesystem::create_symlink(program, folder / "engine");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
  ASSERT_TRUE(eventually([&] { return engine->stats()[0].condition.presence == EnginePresence::up; }));
  ASSERT_TRUE(running->wait_ended(1, 60s));
  EXPECT_EQ(running->record().tokens, expected(some_prompt(1, 20), 300));
}

TEST(EngineProcess, AnEngineThatCannotLoadSaysWhy) {
  const auto refused = EngineProcess::start(simulated({"--refuse"}));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::corrupt);
  EXPECT_EQ(refused.error().message, "the model is broken");
  const auto dead = EngineProcess::start(simulated({"--die"}));
  ASSERT_FALSE(dead);
  EXPECT_NE(dead.error().message.find("status 1"), std::string::npos) << dead.error().message;
  EXPECT_TRUE(no_child_is_left());
}

TEST(EngineProcess, GivesUpInTheEnd) {
  EngineProcessOptions options = simulated({"--step-us=20000"});  // the request takes 8 s
  const std::string program = options.program;
  const ScratchDirectory folder;
  options.program = folder / "engine";
  std::filesystem::create_symlink(program, options.program);
  const auto engine = EngineProcess::start(std::move(options)).value();
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), 400), sink).has_value());
  sink->wait_outputs(3);
  std::filesystem::remove(folder / "engine");
  signal_engine(*engine, SIGKILL);
  ASSERT_TRUE(sink->wait_ended(1, 60s));
  EXPECT_EQ(sink->record().ends[0].finished, FinishReason::error);
  EXPECT_TRUE(eventually([&] { return !engine->stats()[0].condition.healthy; }));
  EXPECT_EQ(engine->submit(request_for(some_prompt(1, 20), 5), sink).error().code, ErrorCode::unavailable);
  engine->drain();
}

TEST(EngineProcess, AbortsAndRefusals) {
  const auto engine = EngineProcess::start(simulated({"--step-us=20000"})).value();
  const auto error = [&](Request request) {
    return engine->submit(std::move(request), std::make_shared<Recorder>()).error();
  };
  EXPECT_EQ(error(request_for({}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for({kVocab}, 5)).field, "prompt");
  EXPECT_EQ(error(request_for(some_prompt(1, 512), 5)).field, "prompt");
  Request many = request_for({1}, 5);
  many.sampling.n = 1000;
  EXPECT_EQ(error(many).field, "n");
  // An error that only the engine can detect ends the request.
  Request broken = request_for({1}, 5);
  broken.grammar = {.kind = grammar::GrammarKind::regex, .text = "(", .field = "regex"};
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(std::move(broken), sink).has_value());
  ASSERT_TRUE(sink->wait_ended(1, 60s));
  EXPECT_EQ(sink->record().ends[0].error->field, "regex");

  auto running = std::make_shared<Recorder>(), waiting = std::make_shared<Recorder>();
  const auto first = engine->submit(request_for(some_prompt(1, 20), 450), running);
  running->wait_outputs(2);
  engine->abort(*first);
  ASSERT_TRUE(running->wait_ended(1, 60s));
  EXPECT_EQ(running->record().ends[0].finished, FinishReason::abort);
  signal_engine(*engine, SIGKILL);
  const auto second = engine->submit(request_for(some_prompt(1, 20), 450), waiting);
  engine->abort(*second);
  ASSERT_TRUE(waiting->wait_ended(1, 60s));
  EXPECT_EQ(waiting->record().ends[0].finished, FinishReason::abort);
  engine->drain();
  EXPECT_TRUE(eventually([&] { return engine->stats()[0].requests.unfinished == 0; }));
  EXPECT_FALSE(engine->submit(request_for({1}, 5), sink));
}

}  // namespace
}  // namespace octavo::remote
