// Tests engines on another host, which is the same machine here.
#include "remote/engine_meeting.h"

#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/testing/eventually.h"
#include "dist/tcp_socket.h"
#include "engine/testing/rig.h"
#include "remote/engine_process.h"

namespace octavo::remote {
namespace {

using namespace std::chrono_literals;

constexpr int kEngine = 3;
constexpr const char* kSlow = "--step-us=20000";  // 480 tokens take longer than stopping a host

std::string program() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "simulated_engine";
}

// Runs the host of an engine until its destructor.
struct Host {
  Result<> ended;
  std::jthread thread;

  explicit Host(const EngineMeetingOptions& server)
      : thread([this, server](const std::stop_token& stop) {
          ended = run_engine_of_host(server, kEngine,
                                     {"simulated_engine", kSlow, "--index=3", "--of-another-host"},
                                     stop, program());
        }) {}
};

// The engine is a child of one of this process's threads.
pid_t engine_pid() {
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    std::ifstream children(task.path() / "children");
    if (pid_t pid = 0; children >> pid) return pid;
  }
  return -1;
}

struct Served {
  std::pair<Socket, int> port = reserve_port().value();
  EngineMeetingOptions meeting_options{.port = port.second, .identity = "a model"};
  std::shared_ptr<EngineMeeting> meeting = EngineMeeting::open(meeting_options, {kEngine}).value();
  std::unique_ptr<EngineProcess> client;

  void start() {
    EngineProcessOptions options;
    options.meeting = meeting;
    options.number = kEngine;
    options.hung_after_ms = 3000;
    client = EngineProcess::start(std::move(options)).value();
  }
  std::shared_ptr<Recorder> submit(unsigned seed, int tokens) const {
    auto sink = std::make_shared<Recorder>();
    EXPECT_TRUE(client->submit(request_for(some_prompt(seed, 20), tokens), sink));
    return sink;
  }
};

TEST(EngineMeeting, AnEngineOfAnotherHostIsAsOneOfThis) {
  Served served;
  auto host = std::make_unique<Host>(served.meeting_options);
  served.start();
  EXPECT_EQ(served.client->info().index, kEngine);
  const auto stream = served.submit(1, 100);
  stream->wait_outputs(5);
  const pid_t first = engine_pid();
  ASSERT_GT(first, 0);
  kill(first, SIGKILL);
  ASSERT_TRUE(stream->wait_ended(1, 60s));
  EXPECT_EQ(stream->record().tokens, expected(some_prompt(1, 20), 100)) << "it goes on with the next one";
  ASSERT_TRUE(eventually([&] { return engine_pid() > 0 && engine_pid() != first; }));

  const auto lost = served.submit(2, 480);
  lost->wait_outputs(1);
  host.reset();
  EXPECT_EQ(engine_pid(), -1);
  ASSERT_TRUE(lost->wait_ended(1, 60s));
  EXPECT_EQ(lost->record().ends[0].error->message, "engine 3 on another host is not connected");
  host = std::make_unique<Host>(served.meeting_options);
  ASSERT_TRUE(eventually([&] { return served.client->stats()[0].condition.presence == EnginePresence::up; }));
  const auto again = served.submit(3, 30);
  ASSERT_TRUE(again->wait_ended(1, 60s));
  EXPECT_EQ(again->record().tokens, expected(some_prompt(3, 20), 30));

  // The engine must end when its server ends.
  served.client.reset();
  served.meeting.reset();
  EXPECT_TRUE(eventually([] { return engine_pid() == -1; }));
}

TEST(EngineMeeting, WhoDoesNotBelongIsTold) {
  const Served served;
  EngineMeetingOptions other = served.meeting_options;
  other.identity = "another model";
  const Result<> refused = run_engine_of_host(other, kEngine, {"simulated_engine"}, {}, program());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().field, "data_parallel_start_rank");
  EXPECT_NE(refused.error().message.find("waits for engines 3: start both with the same model and options"),
            std::string::npos);
  EXPECT_FALSE(run_engine_of_host(served.meeting_options, kEngine + 1, {"simulated_engine"}, {}, program()));
  EXPECT_FALSE(served.meeting->take(kEngine));
}

}  // namespace
}  // namespace octavo::remote
