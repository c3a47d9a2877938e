#include "fleet/autoscale/connectors/process.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/testing/scratch_directory.h"
#include "dist/tcp_socket.h"
#include "http/server.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

// The programs that these tests start never listen. server_at() listens in their place. In
// tests/e2e/test_plan_live.py, the started programs listen.
std::unique_ptr<http::Server> server_at(int port) {
  return *http::Server::start({.port = static_cast<std::uint16_t>(port)},
                              [](std::shared_ptr<http::Exchange> e) { e->respond({.body = "{}"}); });
}

struct Started {
  ScratchDirectory folder;
  const std::pair<Socket, int> reserved = reserve_port().value();
  const int first_port = reserved.second;  // no other program gets it

  ProcessOptions options(std::string_view then) const {
    return {.command = fmt::format("sh -c 'echo {{port}} >> {}; {}'", (folder / "log").string(), then),
            .router = {.host = "127.0.0.1", .port = 1},
            .first_port = first_port,
            .last_port = first_port + 20};
  }
  int count() const {
    std::ifstream file(folder / "log");
    return static_cast<int>(std::count(std::istreambuf_iterator<char>(file), {}, '\n'));
  }
  bool reach(int wanted) const {
    for (int i = 0; i < 60'000 && count() < wanted; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return count() == wanted;
  }
};

TEST(ProcessConnector, OneThatEndsIsStartedAgainAfterAWhile) {
  const Started started;
  ProcessConnector connector(started.options("exit 3"));
  connector.tick(1, 0);
  ASSERT_TRUE(started.reach(1));
  // the process has ended, and the connector may start a new one only after five seconds
  for (int i = 1; i < 200; ++i) {
    connector.tick(1, kSecond + i);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(started.count(), 1);
  // If the end of the process is noticed only now, the next start is five seconds later.
  for (int i = 10; i < 60'000 && started.count() < 2; i += 6) {
    connector.tick(1, i * kSecond);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(started.count(), 2);
}

TEST(ProcessConnector, OneThatIsNotReadyInTimeIsEnded) {
  const Started started;
  ProcessOptions options = started.options("exec sleep 100");
  options.startup_us = 30 * kSecond;
  ProcessConnector connector(std::move(options));
  connector.tick(2, 0);
  ASSERT_TRUE(started.reach(2));
  connector.tick(2, 29 * kSecond);
  connector.tick(2, 31 * kSecond);  // kills both processes
  connector.tick(2, 32 * kSecond);
  connector.tick(2, 60 * kSecond);
  EXPECT_TRUE(started.reach(4));
}

struct Listed {
  std::atomic<int> posts = 0;
  std::unique_ptr<http::Server> router = *http::Server::start({}, [this](std::shared_ptr<http::Exchange> e) {
    if (e->request().method == "POST") ++posts;
    e->respond({.status = 202, .body = R"({"worker_id":"1"})"});
  });
};

TEST(ProcessConnector, AServerIsRegisteredAgainAndReplacedWhenItIsSilent) {
  const Started started;
  Listed list;
  ProcessOptions options = started.options("exec sleep 100");
  options.router.port = list.router->port();
  ProcessConnector connector(options);
  connector.tick(1, 0);
  ASSERT_TRUE(started.reach(1));
  auto server = server_at(options.first_port);
  connector.tick(1, 1 * kSecond);
  EXPECT_EQ(list.posts, 1);
  connector.tick(1, 2 * kSecond);
  EXPECT_EQ(list.posts, 1);
  connector.tick(1, 5 * kSecond);
  EXPECT_EQ(list.posts, 2) << "the router may have restarted";
  server.reset();
  connector.tick(1, 14 * kSecond);
  EXPECT_EQ(started.count(), 1) << "it may be slow";
  connector.tick(1, 15 * kSecond);
  connector.tick(1, 16 * kSecond);  // kills the process
  connector.tick(1, 17 * kSecond);
  connector.tick(1, 40 * kSecond);
  EXPECT_TRUE(started.reach(2));
}

// A tick may come so late that a server seems to be silent.
TEST(ProcessConnector, OneUnansweredRequestEndsNoServer) {
  const Started started;
  Listed list;
  ProcessOptions options = started.options("exec sleep 100");
  options.router.port = list.router->port();
  ProcessConnector connector(options);
  connector.tick(1, 0);
  ASSERT_TRUE(started.reach(1));
  auto server = server_at(options.first_port);
  connector.tick(1, 1 * kSecond);
  server.reset();
  connector.tick(1, 30 * kSecond);
  server = server_at(options.first_port);
  for (int i = 1; i <= 60; ++i) connector.tick(1, (30 + i) * kSecond);
  EXPECT_EQ(started.count(), 1) << "a server that was killed is started again";
}

TEST(ProcessConnector, NothingIsLeftAtTheEnd) {
  const Started started;
  ProcessConnector connector(started.options("exec sleep 100"));
  connector.tick(3, 0);
  ASSERT_TRUE(started.reach(3));
  bool ended = false;
  for (int i = 1; i < 60'000 && !ended; ++i) {
    ended = connector.end(i);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(ended);
}

TEST(ProcessConnector, PortsAreAllThereAre) {
  const Started started;
  ProcessOptions options = started.options("exec sleep 100");
  options.last_port = options.first_port;
  ProcessConnector connector(std::move(options));
  connector.tick(5, 0);
  connector.tick(5, 100 * kSecond);
  EXPECT_TRUE(started.reach(1));
}

}  // namespace
}  // namespace octavo::fleet
