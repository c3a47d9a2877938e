#include "fleet/autoscale/owned_process.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "base/testing/scratch_directory.h"

namespace octavo::fleet {
namespace {

void wait_for(OwnedProcess& process) {
  while (process.running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

TEST(OwnedProcess, RunsWordsAsAShellReadsThem) {
  const ScratchDirectory folder;
  auto process = OwnedProcess::start(fmt::format("touch '{}'/\"a b\"", folder.path().string())).value();
  wait_for(process);
  EXPECT_TRUE(process.succeeded());
  EXPECT_TRUE(std::filesystem::exists(folder / "a b"));
}

TEST(OwnedProcess, SaysHowItEnded) {
  auto none = OwnedProcess::start("/nowhere/program 2>/dev/null").value();
  wait_for(none);
  EXPECT_FALSE(none.succeeded());
  EXPECT_EQ(none.fate(), "exited with status 127");
  auto process = OwnedProcess::start("sleep 100").value();
  EXPECT_TRUE(process.running());
  process.terminate();
  wait_for(process);
  EXPECT_EQ(process.fate(), "killed by signal 15 (Terminated)");
}

TEST(OwnedProcess, GoesWithItsObject) {
  const ScratchDirectory folder;
  {
    // The shell starts a child process, which must also end.
    auto process =
        OwnedProcess::start(fmt::format("sh -c 'sleep 100 & echo $! > {}; wait'", (folder / "pid").string()))
            .value();
    while (!std::filesystem::exists(folder / "pid") || std::filesystem::file_size(folder / "pid") == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  int pid = 0;
  std::ifstream(folder / "pid") >> pid;
  ASSERT_GT(pid, 0);
  const std::string command = fmt::format("/proc/{}/cmdline", pid);
  std::string left = "sleep";
  for (int i = 0; i < 60'000 && !left.empty(); ++i) {  // until the child has ended or is a zombie
    left.clear();
    std::getline(std::ifstream(command), left);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(left, "");
}

}  // namespace
}  // namespace octavo::fleet
