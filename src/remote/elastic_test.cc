// Tests adding and removing engines while requests run.
#include <signal.h>

#include <filesystem>
#include <future>

#include "engine/testing/rig.h"
#include "remote/data_parallel.h"
#include "remote/engine_process.h"

namespace octavo::remote {
namespace {

using namespace std::chrono_literals;

constexpr int kMost = 4;

// Begins with one engine. Engine 3 fails to start.
struct Fleet {
  std::vector<EngineProcess*> processes = std::vector<EngineProcess*>(kMost);
  std::unique_ptr<DataParallelClient> client;

  Fleet() {
    const auto start = [this](int index, int) -> Result<std::unique_ptr<EngineClient>> {
      EngineProcessOptions options;
      options.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine";
      options.command = {"simulated_engine", index == 3 ? "--refuse" : "--step-us=500",
                         "--index=" + std::to_string(index)};
      TRY(auto engine, EngineProcess::start(std::move(options)));
      processes[static_cast<std::size_t>(index)] = engine.get();
      return engine;
    };
    client =
        std::make_unique<DataParallelClient>(DataParallelClient::start(0, 1, start).value(), 5, start, kMost);
  }
  std::future<Result<>> begin_scale(int engines, int drain_s) {
    auto done = std::make_shared<std::promise<Result<>>>();
    client->scale(engines, drain_s, [done](Result<> result) { done->set_value(std::move(result)); });
    return done->get_future();
  }
  Result<> scale(int engines, int drain_s = 600) { return begin_scale(engines, drain_s).get(); }

  std::shared_ptr<Recorder> submit(unsigned seed, int tokens, std::optional<int> engine = {}) {
    auto sink = std::make_shared<Recorder>();
    Request request = request_for(some_prompt(seed, 10), tokens);
    request.engine = engine;
    EXPECT_TRUE(client->submit(std::move(request), sink));
    return sink;
  }
};

void expect_answer(Recorder& sink, unsigned seed, int tokens) {
  ASSERT_TRUE(sink.wait_ended(1, 120s));
  EXPECT_EQ(sink.record().tokens, expected(some_prompt(seed, 10), tokens));
}

TEST(Elastic, EnginesComeAndGoWhileStreamsRun) {
  Fleet fleet;
  std::vector<std::shared_ptr<Recorder>> streams;
  for (unsigned i = 0; i < 6; ++i) streams.push_back(fleet.submit(i, 300));
  for (int round = 0; round < 2; ++round) {
    EXPECT_TRUE(fleet.scale(3));
    EXPECT_FALSE(fleet.client->scaling());
    EXPECT_EQ(fleet.client->info().engines, 3);
    for (unsigned i = 0; i < 6; ++i) streams.push_back(fleet.submit(i, 300, static_cast<int>(i % 3)));
    streams[streams.size() - 1]->wait_outputs(1);
    EXPECT_TRUE(fleet.scale(1));
    EXPECT_EQ(fleet.client->info().engines, 1);
    ASSERT_EQ(fleet.client->stats().size(), 1u);
    for (std::size_t i = streams.size() - 6; i < streams.size(); ++i)
      if (i % 3 != 0) {
        EXPECT_TRUE(streams[i]->wait_ended(1, 0s)) << "an engine has left before its streams ended";
      }
  }
  for (std::size_t i = 0; i < streams.size(); ++i) {
    expect_answer(*streams[i], static_cast<unsigned>(i % 6), 300);
    EXPECT_EQ(streams[i]->record().ends.at(0).engine, i < 6 ? 0 : static_cast<int>(i % 3));
  }
  const auto missing = fleet.client->submit(
      [] {
        Request request = request_for(some_prompt(1, 10), 5);
        request.engine = 2;
        return request;
      }(),
      std::make_shared<Recorder>());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().field, "data_parallel_rank");
}

TEST(Elastic, WhatIsNotDoneInTimeEndsWithAnError) {
  Fleet fleet;
  EXPECT_TRUE(fleet.scale(2));
  kill(fleet.processes[1]->pid(), SIGSTOP);
  const auto lost = fleet.submit(1, 300, 1), kept = fleet.submit(2, 50, 0);
  EXPECT_TRUE(fleet.scale(1, 0));
  ASSERT_TRUE(lost->wait_ended(1, 0s));
  EXPECT_EQ(lost->record().ends[0].finished, FinishReason::error);
  expect_answer(*kept, 2, 50);
}

TEST(Elastic, ErrorsNameFieldAndLimit) {
  Fleet fleet;
  EXPECT_EQ(fleet.scale(0).error().message, "must be from 1 to 4 (--elastic-ep-max-dp-size), got 0");
  EXPECT_EQ(fleet.scale(5).error().field, "new_data_parallel_size");
  EXPECT_EQ(fleet.scale(2, -1).error().message, "must be from 0 to 86400 seconds, got -1");
  EXPECT_TRUE(fleet.scale(1)) << "as many as there are";
  EXPECT_EQ(fleet.scale(4).error().message, "the model is broken") << "all of them, or none";
  EXPECT_EQ(fleet.client->info().engines, 1);
  EXPECT_TRUE(fleet.scale(2));

  kill(fleet.processes[1]->pid(), SIGSTOP);
  const auto stopped = fleet.submit(1, 5, 1);
  auto shrinks = fleet.begin_scale(1, 600);
  EXPECT_TRUE(fleet.client->scaling());
  EXPECT_EQ(fleet.scale(3).error().code, ErrorCode::unavailable) << "one after the other";
  kill(fleet.processes[1]->pid(), SIGCONT);
  EXPECT_TRUE(shrinks.get());
  expect_answer(*stopped, 1, 5);

  std::promise<Result<>> paused;
  fleet.client->pause(PauseMode::keep, [&](Result<> result) { paused.set_value(std::move(result)); });
  EXPECT_TRUE(paused.get_future().get());
  EXPECT_EQ(fleet.scale(2).error().code, ErrorCode::unavailable);
}

TEST(Elastic, WithoutAWayToStartMoreTheNumberStays) {
  std::vector<std::unique_ptr<EngineClient>> one;
  one.push_back(
      EngineProcess::start(
          {.command = {"simulated_engine", "--step-us=1"},
           .program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine"})
          .value());
  DataParallelClient client(std::move(one), 0);
  std::promise<Result<>> done;
  client.scale(2, 1, [&](Result<> result) { done.set_value(std::move(result)); });
  EXPECT_EQ(done.get_future().get().error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace octavo::remote
