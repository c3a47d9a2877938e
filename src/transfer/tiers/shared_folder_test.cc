#include "transfer/tiers/shared_folder.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

TEST(SharedFolder, EnginesSeeOneState) {
  const ScratchDirectory folder;
  const auto one = SharedFolder::open(folder.path()).value();
  EXPECT_TRUE(SharedFolder::Locked(*one).alone());
  auto two = SharedFolder::open(folder.path()).value();
  {
    SharedFolder::Locked locked(*one);
    EXPECT_EQ(locked.state.files, 0);
    EXPECT_FALSE(locked.alone());
    locked.state = {.files = 3, .changes = 7};
  }
  {
    const SharedFolder::Locked locked(*two);
    EXPECT_EQ(locked.state.files, 3);
    EXPECT_EQ(locked.state.changes, 7);
    EXPECT_FALSE(locked.alone());
  }
  two.reset();
  EXPECT_TRUE(SharedFolder::Locked(*one).alone());
}

TEST(SharedFolder, OneHolderAtATimeAmongThreadsAndEngines) {
  const ScratchDirectory folder;
  const auto one = SharedFolder::open(folder.path()).value(), two = SharedFolder::open(folder.path()).value();
  std::vector<std::thread> threads;
  for (SharedFolder* shared : {one.get(), one.get(), two.get(), two.get()})
    threads.emplace_back([shared] {
      for (int i = 0; i < 500; ++i) {
        SharedFolder::Locked locked(*shared);
        ++locked.state.files;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(SharedFolder::Locked(*one).state.files, 2000);
}

TEST(SharedFolder, AFolderThatIsMissingIsAnError) {
  EXPECT_EQ(SharedFolder::open("/nonexistent/folder").error().code, ErrorCode::io);
}

}  // namespace
}  // namespace octavo
