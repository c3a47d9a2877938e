#include "fleet/autoscale/connectors/command.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <thread>

#include "base/testing/scratch_directory.h"

namespace octavo::fleet {
namespace {

constexpr std::int64_t kSecond = 1'000'000;

struct CommandLog {
  ScratchDirectory folder;
  std::int64_t now_us = 0;

  std::string log() const {
    std::ifstream file(folder / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }
  bool tick_until(CommandConnector& connector, int replicas, std::string_view wanted) {
    for (int i = 0; i < 60'000 && log() != wanted; ++i) {
      connector.tick(replicas, now_us += 1000);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return log() == wanted;
  }
};

TEST(CommandConnector, RunsWhenTheNumberChanges) {
  CommandLog rig;
  CommandConnector connector(
      {.command = fmt::format("echo {{replicas}} {{replicas}} >> {}", (rig.folder / "log").string())});
  ASSERT_EQ(connector.existing({.replicas = {{}, {}}}).value(), 2);
  connector.tick(2, 0);
  EXPECT_TRUE(rig.tick_until(connector, 3, "3 3\n")) << rig.log();
  EXPECT_TRUE(rig.tick_until(connector, 1, "3 3\n1 1\n")) << rig.log();
  for (int i = 0; i < 20; ++i) connector.tick(1, rig.now_us += kSecond);
  EXPECT_EQ(rig.log(), "3 3\n1 1\n");
}

TEST(CommandConnector, TriesAgainLaterWhatFailed) {
  CommandLog rig;
  CommandConnector connector(
      {.command = fmt::format("sh -c 'echo {{replicas}} >> {}; exit 1'", (rig.folder / "log").string())});
  EXPECT_TRUE(rig.tick_until(connector, 2, "2\n"));
  for (int i = 0; i < 50; ++i) {  // the command has failed, and the connector does not retry it yet
    connector.tick(2, rig.now_us += 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(rig.log(), "2\n");
  rig.now_us += 20 * kSecond;
  EXPECT_TRUE(rig.tick_until(connector, 2, "2\n2\n"));
}

TEST(CommandConnector, EndsOneThatHangs) {
  CommandLog rig;
  CommandConnector connector(
      {.command = fmt::format("sh -c 'echo {{replicas}} >> {}; sleep 100'", (rig.folder / "log").string())});
  EXPECT_TRUE(rig.tick_until(connector, 2, "2\n"));
  connector.tick(2, rig.now_us += 61 * kSecond);
  rig.now_us += 20 * kSecond;
  EXPECT_TRUE(rig.tick_until(connector, 2, "2\n2\n"));
}

}  // namespace
}  // namespace octavo::fleet
