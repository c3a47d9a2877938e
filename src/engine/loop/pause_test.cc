#include <chrono>
#include <future>
#include <utility>

#include "engine/testing/rig.h"

namespace octavo {
namespace {

std::future<Result<>> pause(EngineClient& engine, PauseMode mode) {
  auto done = std::make_shared<std::promise<Result<>>>();
  engine.pause(mode, [done](Result<> result) { done->set_value(std::move(result)); });
  return done->get_future();
}

std::shared_ptr<Recorder> submit(Rig& rig, unsigned seed, int tokens) {
  auto sink = std::make_shared<Recorder>();
  EXPECT_TRUE(rig.engine->submit(request_for(some_prompt(seed, 40), tokens), sink));
  return sink;
}

void expect_silence(Recorder& sink) { EXPECT_FALSE(sink.wait_ended(1, std::chrono::seconds(0))); }

class PauseModes : public EngineModes {};
INSTANTIATE_TEST_SUITE_P(Modes, PauseModes, EngineModes::all(), EngineModes::name);

TEST_P(PauseModes, WhatRunsStaysAndGoesOnToTheSameAnswer) {
  Rig rig({.mode = GetParam()});
  const auto running = submit(rig, 1, 400);
  running->wait_outputs(3);
  EXPECT_TRUE(pause(*rig.engine, PauseMode::keep).get());
  EXPECT_TRUE(rig.engine->own_stats().condition.paused);
  const auto waiting = submit(rig, 2, 20);
  const std::size_t count = running->record().tokens.size();
  EXPECT_TRUE(pause(*rig.engine, PauseMode::keep).get()) << "again";
  EXPECT_EQ(running->record().tokens.size(), count);
  expect_silence(*waiting);
  rig.engine->resume();
  EXPECT_FALSE(rig.engine->own_stats().condition.paused);
  running->wait_ended(1);
  waiting->wait_ended(1);
  EXPECT_EQ(running->record().tokens, expected(some_prompt(1, 40), 400));
  EXPECT_EQ(waiting->record().tokens, expected(some_prompt(2, 40), 20));
  rig.expect_empty();
}

TEST_P(PauseModes, WhatRunsIsFinishedAndWhatComesWaits) {
  Rig rig({.mode = GetParam()});
  const auto running = submit(rig, 1, 100);
  running->wait_outputs(1);
  auto paused = pause(*rig.engine, PauseMode::wait);
  const auto waiting = submit(rig, 2, 20);
  EXPECT_TRUE(paused.get());
  EXPECT_EQ(running->record().tokens, expected(some_prompt(1, 40), 100));
  expect_silence(*waiting);
  rig.engine->resume();
  waiting->wait_ended(1);
  EXPECT_EQ(waiting->record().tokens, expected(some_prompt(2, 40), 20));
  rig.expect_empty();
}

// Pauses at the first output, on the engine thread, so that the request is running when the engine pauses.
class AbortsAtFirstOutput final : public OutputSink {
 public:
  AbortsAtFirstOutput(EngineClient& engine, std::shared_ptr<Recorder> recorder)
      : engine_(engine), recorder_(std::move(recorder)) {}
  void deliver(Output&& output) noexcept override {
    if (!std::exchange(requested_, true))
      engine_.pause(PauseMode::abort, [this](Result<> result) { paused_.set_value(std::move(result)); });
    recorder_->deliver(std::move(output));
  }
  std::future<Result<>> paused() { return paused_.get_future(); }

 private:
  EngineClient& engine_;
  const std::shared_ptr<Recorder> recorder_;
  bool requested_ = false;
  std::promise<Result<>> paused_;
};

TEST_P(PauseModes, WhatRunsIsAborted) {
  Rig rig({.mode = GetParam()});
  EXPECT_TRUE(pause(*rig.engine, PauseMode::keep).get());
  std::vector<std::shared_ptr<Recorder>> running;
  for (unsigned i = 0; i < 7; ++i) running.push_back(submit(rig, i, 100'000));
  running.push_back(std::make_shared<Recorder>());
  const auto sink = std::make_shared<AbortsAtFirstOutput>(*rig.engine, running.back());
  auto paused = sink->paused();
  EXPECT_TRUE(rig.engine->submit(request_for(some_prompt(8, 40), 100'000), sink));
  rig.engine->resume();
  EXPECT_TRUE(paused.get());
  for (const auto& each : running) {
    ASSERT_TRUE(each->wait_ended(1, std::chrono::seconds(0)));
    EXPECT_EQ(each->record().ends[0].finished, FinishReason::abort);
  }
  rig.engine->resume();
  const auto next = submit(rig, 9, 20);
  next->wait_ended(1);
  EXPECT_EQ(next->record().tokens, expected(some_prompt(9, 40), 20));
  rig.expect_empty();
}

TEST_P(PauseModes, WhatWaitsCanBeAborted) {
  Rig rig({.mode = GetParam()});
  EXPECT_TRUE(pause(*rig.engine, PauseMode::wait).get());
  auto sink = std::make_shared<Recorder>();
  rig.engine->abort(rig.engine->submit(request_for(some_prompt(1, 40), 20), sink).value());
  ASSERT_TRUE(sink->wait_ended(1, std::chrono::seconds(60)));
  EXPECT_EQ(sink->record().ends[0].finished, FinishReason::abort);
  rig.engine->resume();
  rig.expect_empty();
}

TEST(Pause, WhoResumesFirstIsHeard) {
  Rig rig;
  const auto running = submit(rig, 1, 400);
  running->wait_outputs(1);
  auto paused = pause(*rig.engine, PauseMode::wait);
  rig.engine->resume();
  (void)paused.get();  // either the pause or the resume may be first
  EXPECT_TRUE(running->wait_ended(1, std::chrono::seconds(60)));
  rig.expect_empty();
}

// Takes 10 ms for each output, on the engine's thread, so that a request of 400 tokens takes 4 s.
class SlowSink final : public OutputSink {
 public:
  void deliver(Output&&) noexcept override { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }
};

TEST(Pause, TheEndIsHeard) {
  Rig rig;
  EXPECT_TRUE(rig.engine->submit(request_for(some_prompt(1, 40), 400), std::make_shared<SlowSink>()));
  auto paused = pause(*rig.engine, PauseMode::wait);
  const auto waiting = submit(rig, 2, 20);
  rig.engine.reset();
  EXPECT_FALSE(paused.get());
  EXPECT_TRUE(waiting->wait_ended(1, std::chrono::seconds(0)));
}

}  // namespace
}  // namespace octavo
