// unload() and load() of an EngineProcess.
#include <atomic>
#include <filesystem>

#include "base/testing/eventually.h"
#include "engine/testing/rig.h"
#include "remote/engine_process.h"

namespace octavo::remote {
namespace {

using namespace std::chrono_literals;

EngineProcessOptions simulated() {
  EngineProcessOptions options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine";
  options.command = {"simulated_engine", "--step-us=5000"};
  return options;
}

Result<> outcome(const std::function<void(EngineClient::Done)>& call) {
  std::promise<Result<>> ended;
  call([&](Result<> result) { ended.set_value(std::move(result)); });
  return ended.get_future().get();
}

TEST(EngineUnload, AnUnloadedEngineContinuesItsRequestsAfterTheLoad) {
  EngineProcessOptions options = simulated();
  std::atomic<int> wanted = 0;
  options.wanted = [&] { ++wanted; };
  const auto engine = EngineProcess::start(std::move(options)).value();
  auto running = std::make_shared<Recorder>(), waiting = std::make_shared<Recorder>(),
       aborted = std::make_shared<Recorder>();
  constexpr int kTokens = 400;  // take 2 s, much longer than the way to unload()
  ASSERT_TRUE(engine->submit(request_for(some_prompt(1, 20), kTokens), running).has_value());
  running->wait_outputs(3);
  EXPECT_TRUE(outcome([&](auto done) { engine->unload(done); }));
  EXPECT_EQ(engine->pid(), -1);
  EXPECT_EQ(engine->stats()[0].condition.presence, EnginePresence::unloaded);
  EXPECT_EQ(wanted, 0);
  EXPECT_LT(std::ssize(running->record().tokens), kTokens);
  ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 30), waiting).has_value());
  EXPECT_EQ(wanted, 1);
  engine->abort(engine->submit(request_for(some_prompt(3, 20), 30), aborted).value());
  ASSERT_TRUE(aborted->wait_ended(1, 60s));
  EXPECT_TRUE(eventually([&] { return engine->stats()[0].requests.unfinished == 2; }));
  EXPECT_FALSE(outcome([&](auto done) { engine->unload(done); })) << "it is unloaded already";
  EXPECT_FALSE(outcome([&](auto done) { engine->sleep(1, done); })) << "it is unloaded";
  EXPECT_TRUE(outcome([&](auto done) { engine->load(done); }));
  EXPECT_FALSE(outcome([&](auto done) { engine->load(done); })) << "it is loaded already";
  ASSERT_TRUE(running->wait_ended(1, 60s));
  ASSERT_TRUE(waiting->wait_ended(1, 60s));
  EXPECT_EQ(running->record().tokens, expected(some_prompt(1, 20), kTokens));
  EXPECT_EQ(waiting->record().tokens, expected(some_prompt(2, 20), 30));
  EXPECT_EQ(wanted, 2);
}

TEST(EngineUnload, AStopEndsAStartThatNeverEnds) {
  EngineProcessOptions options;
  options.program = "/bin/sleep";
  options.command = {"sleep", "1000"};
  std::stop_source stop;
  options.stop = stop.get_token();
  const auto engine = EngineProcess::start(std::move(options), [&]() -> Result<> {
    stop.request_stop();
    return {};
  });
  ASSERT_FALSE(engine.has_value());
  EXPECT_EQ(engine.error().message, "the engine was stopped");
}

TEST(EngineUnload, AnUnloadedEngineStops) {
  auto engine = EngineProcess::start(simulated()).value();
  EXPECT_TRUE(outcome([&](auto done) { engine->unload(done); }));
  auto waiting = std::make_shared<Recorder>();
  ASSERT_TRUE(engine->submit(request_for(some_prompt(2, 20), 30), waiting).has_value());
  engine.reset();
  ASSERT_EQ(waiting->record().ends.size(), 1u);
  EXPECT_EQ(waiting->record().ends[0].finished, FinishReason::error);
}

}  // namespace
}  // namespace octavo::remote
