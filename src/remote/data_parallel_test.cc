#include "remote/data_parallel.h"

#include <signal.h>

#include <filesystem>
#include <future>
#include <set>

#include "base/testing/eventually.h"
#include "base/testing/scratch_directory.h"
#include "engine/testing/rig.h"
#include "remote/engine_process.h"

namespace octavo::remote {
namespace {

using namespace std::chrono_literals;

Result<std::unique_ptr<EngineProcess>> simulated(std::vector<std::string> flags) {
  EngineProcessOptions options;
  options.program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine";
  options.command = {"simulated_engine"};
  options.command.insert(options.command.end(), flags.begin(), flags.end());
  return EngineProcess::start(std::move(options));
}

struct Fleet {
  std::vector<EngineProcess*> processes = std::vector<EngineProcess*>(3);
  std::unique_ptr<EngineClient> client;

  Fleet() {
    const auto start = [&](int index, int) -> Result<std::unique_ptr<EngineClient>> {
      TRY(auto engine, simulated({"--step-us=200", "--index=" + std::to_string(index)}));
      processes[static_cast<std::size_t>(index)] = engine.get();
      return engine;
    };
    client = std::make_unique<DataParallelClient>(DataParallelClient::start(0, 3, start).value(), 5);
  }
  void signal(int number) const {
    for (const EngineProcess* process : processes) kill(process->pid(), number);
  }
  std::vector<int> unfinished() const {
    std::vector<int> counts;
    for (const EngineStats& stats : client->stats()) counts.push_back(stats.requests.unfinished);
    return counts;
  }
};

// An engine whose reloads end when the test says so.
class ReloadingEngine final : public EngineClient {
 public:
  EngineInfo info() const override { return {}; }
  Result<RequestId> submit(Request, std::shared_ptr<OutputSink>) override { return 1; }
  void abort(RequestId) override {}
  void reset_prefix_cache() override {}
  void reload_weights(std::string path, Done done) override {
    paths.push_back(std::move(path));
    reloads.push_back(std::move(done));
  }
  std::vector<EngineStats> stats() const override { return {{}}; }
  void drain() override {}

  std::vector<std::string> paths{};
  std::vector<Done> reloads{};
};

std::vector<std::unique_ptr<EngineClient>> reloading_engines(std::vector<ReloadingEngine*>& held) {
  std::vector<std::unique_ptr<EngineClient>> engines;
  for (int i = 0; i < 2; ++i) {
    auto engine = std::make_unique<ReloadingEngine>();
    held.push_back(engine.get());
    engines.push_back(std::move(engine));
  }
  return engines;
}

TEST(DataParallel, EnginesNeverServeDifferentWeights) {
  std::vector<ReloadingEngine*> held;
  DataParallelClient client(reloading_engines(held), 5);
  client.set_weights("model");
  std::vector<Result<>> ended;
  const auto note = [&](const Result<>& result) { ended.push_back(result); };
  const Result<> broken = failure(ErrorCode::corrupt, "the shape is wrong");

  client.reload_weights("new", note);
  held[0]->reloads.back()({});
  held[1]->reloads.back()(broken);
  EXPECT_TRUE(ended.empty()) << "engine 0 has the new weights, so it must load the previous ones again";
  EXPECT_EQ(held[0]->paths, (std::vector<std::string>{"new", "model"}));
  EXPECT_EQ(held[1]->paths, std::vector<std::string>{"new"}) << "engine 1 has kept its weights";
  client.reload_weights("other", note);
  EXPECT_EQ(ended.back().error().code, ErrorCode::unavailable) << "the reload has not ended";
  held[0]->reloads.back()({});
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended.back().error().message, "the shape is wrong");

  client.reload_weights("wrong", note);
  for (const ReloadingEngine* engine : held) engine->reloads.back()(broken);
  EXPECT_EQ(ended.size(), 3U) << "no engine has changed";
  client.reload_weights("second", note);
  for (const ReloadingEngine* engine : held) engine->reloads.back()({});
  EXPECT_TRUE(ended.back());
  client.reload_weights("third", note);
  held[0]->reloads.back()(broken);
  const EngineClient::Done loaded = held[1]->reloads.back();  // a copy, because the call adds a reload
  loaded({});
  EXPECT_EQ(held[1]->paths.back(), "second");
  held[1]->reloads.back()({});
  EXPECT_FALSE(ended.back());
}

TEST(DataParallel, ReloadsDoNotOverlap) {
  std::vector<ReloadingEngine*> held;
  DataParallelClient client(reloading_engines(held), 5);
  std::vector<Result<>> ended;
  const auto note = [&](const Result<>& result) { ended.push_back(result); };
  client.reload_weights("1", note);
  client.reload_weights("2", note);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].error().code, ErrorCode::unavailable);
  EXPECT_EQ(held[0]->reloads.size(), 1U);
  held[0]->reloads[0]({});
  client.reload_weights("2", note);
  EXPECT_EQ(ended.size(), 2U) << "one engine still loads";
  held[1]->reloads[0](failure(ErrorCode::io, "no file"));
  held[0]->reloads[1]({});  // loads the previous weights
  ASSERT_EQ(ended.size(), 3U);
  EXPECT_EQ(ended[2].error().code, ErrorCode::io);
  client.reload_weights("0", note);
  EXPECT_EQ(held[0]->reloads.size(), 3U);
  EXPECT_EQ(held[1]->reloads.size(), 2U);
  for (const ReloadingEngine* engine : held) engine->reloads.back()({});
  EXPECT_TRUE(ended.back());
}

TEST(DataParallel, RequestsGoWhereLeastIsToBeDone) {
  const Fleet fleet;
  EXPECT_EQ(fleet.client->info().engines, 3);
  EXPECT_EQ(fleet.client->info().max_num_seqs, 24);
  fleet.signal(SIGSTOP);  // stops all engines, so that no request ends
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 12; ++i) {
    Request request = request_for(some_prompt(i, 10), 100);
    if (i == 0) request.sampling.n = 3;  // counts as three answers
    ASSERT_TRUE(fleet.client->submit(std::move(request), sinks.emplace_back(std::make_shared<Recorder>())));
  }
  std::vector<int> counts = fleet.unfinished();
  std::ranges::sort(counts);
  EXPECT_EQ(counts, (std::vector<int>{4, 5, 5}));
  fleet.signal(SIGCONT);
  std::set<int> engines;
  for (unsigned i = 0; i < 12; ++i) {
    ASSERT_TRUE(sinks[i]->wait_ended(i == 0 ? 3 : 1, 60s));
    EXPECT_EQ(sinks[i]->record().tokens, expected(some_prompt(i, 10), 100));
    engines.insert(sinks[i]->record().ends.at(0).engine);
  }
  EXPECT_EQ(engines, (std::set<int>{0, 1, 2}));
}

TEST(DataParallel, ARequestMayNameItsEngine) {
  const Fleet fleet;
  for (const int engine : {2, 2, 0}) {
    auto sink = std::make_shared<Recorder>();
    Request request = request_for(some_prompt(1, 10), 5);
    request.engine = engine;
    ASSERT_TRUE(fleet.client->submit(std::move(request), sink));
    ASSERT_TRUE(sink->wait_ended(1, 60s));
    EXPECT_EQ(sink->record().ends.at(0).engine, engine);
  }
  for (const int engine : {-1, 3}) {
    Request request = request_for(some_prompt(1, 10), 5);
    request.engine = engine;
    const auto refused = fleet.client->submit(std::move(request), std::make_shared<Recorder>());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().field, "data_parallel_rank");
  }
}

TEST(DataParallel, AnAbortFindsItsEngine) {
  const Fleet fleet;
  std::vector<std::pair<RequestId, std::shared_ptr<Recorder>>> running;
  fleet.signal(SIGSTOP);
  for (unsigned i = 0; i < 6; ++i) {
    auto sink = std::make_shared<Recorder>();
    const auto id = fleet.client->submit(request_for(some_prompt(i, 10), 100), sink);
    ASSERT_TRUE(id);
    running.emplace_back(*id, sink);
  }
  for (std::size_t i = 0; i < 6; i += 2) fleet.client->abort(running[i].first);
  fleet.signal(SIGCONT);
  for (std::size_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(running[i].second->wait_ended(1, 60s));
    EXPECT_EQ(running[i].second->record().ends.at(0).finished,
              i % 2 == 0 ? FinishReason::abort : FinishReason::length);
  }
}

TEST(DataParallel, OneEngineDiesAndItsRequestsGoOn) {
  const Fleet fleet;
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 9; ++i)
    ASSERT_TRUE(fleet.client->submit(request_for(some_prompt(i, 10), 200),
                                     sinks.emplace_back(std::make_shared<Recorder>())));
  sinks[1]->wait_outputs(3);
  kill(fleet.processes[1]->pid(), SIGKILL);
  for (unsigned i = 0; i < 9; ++i) {
    ASSERT_TRUE(sinks[i]->wait_ended(1, 60s));
    EXPECT_EQ(sinks[i]->record().tokens, expected(some_prompt(i, 10), 200));
  }
}

TEST(DataParallel, RequestsGoToEnginesThatAreUp) {
  const auto program = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine";
  const ScratchDirectory folder;
  std::filesystem::create_symlink(program, folder / "engine");
  EngineProcess* second = nullptr;
  const auto start = [&](int index, int) -> Result<std::unique_ptr<EngineClient>> {
    EngineProcessOptions options;
    options.program = index == 1 ? folder / "engine" : program;
    options.command = {"simulated_engine", "--step-us=200", "--index=" + std::to_string(index)};
    TRY(auto engine, EngineProcess::start(std::move(options)));
    if (index == 1) second = engine.get();
    return engine;
  };
  DataParallelClient client(DataParallelClient::start(0, 2, start).value(), 5);
  std::filesystem::remove(folder / "engine");  // prevents a restart of the engine
  kill(second->pid(), SIGKILL);
  ASSERT_TRUE(eventually([&] { return second->stats()[0].condition.presence == EnginePresence::starting; }));
  std::vector<std::shared_ptr<Recorder>> sinks;
  for (unsigned i = 0; i < 6; ++i)
    ASSERT_TRUE(
        client.submit(request_for(some_prompt(i, 10), 20), sinks.emplace_back(std::make_shared<Recorder>())));
  for (unsigned i = 0; i < 6; ++i) {
    ASSERT_TRUE(sinks[i]->wait_ended(1, 60s));
    EXPECT_EQ(sinks[i]->record().tokens, expected(some_prompt(i, 10), 20));
  }
}

TEST(DataParallel, AnEngineThatCannotStartIsAnError) {
  const auto started =
      DataParallelClient::start(0, 2, [](int index, int) -> Result<std::unique_ptr<EngineClient>> {
        return simulated({index == 1 ? "--refuse" : "--step-us=1"});
      });
  ASSERT_FALSE(started);
  EXPECT_EQ(started.error().message, "the model is broken");
}

TEST(DataParallel, AdaptersAreAnsweredOnceByAll) {
  const Fleet fleet;
  std::promise<Result<>> answered;
  fleet.client->load_adapter({"a", "/nowhere"},
                             [&](Result<> result) { answered.set_value(std::move(result)); });
  EXPECT_FALSE(answered.get_future().get());
}

TEST(DataParallel, DrainingTakesNothingNew) {
  const Fleet fleet;
  auto sink = std::make_shared<Recorder>();
  ASSERT_TRUE(fleet.client->submit(request_for(some_prompt(1, 10), 50), sink));
  fleet.client->drain();
  EXPECT_TRUE(sink->wait_ended(1, 0s));
  const auto refused = fleet.client->submit(request_for(some_prompt(1, 10), 5), sink);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
}

}  // namespace
}  // namespace octavo::remote
