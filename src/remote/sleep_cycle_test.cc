#include "remote/sleep_cycle.h"

#include <gtest/gtest.h>

namespace octavo::remote {
namespace {

struct Call {
  std::optional<Result<>> result;
  SleepCycle::Done done() {
    return [this](Result<> r) { result = std::move(r); };
  }
};

TEST(SleepCycle, Level1SleepsAndWakesWhenTheProcessResponds) {
  SleepCycle cycle;
  Call slept, woken;
  ASSERT_TRUE(cycle.sleep(1, slept.done()));
  EXPECT_EQ(cycle.due(), 1);
  EXPECT_EQ(cycle.wanted_level(), 1);
  EXPECT_EQ(cycle.reached_level(), 0) << "not yet";
  EXPECT_EQ(cycle.sleep(2, slept.done()).error().message, "the engine is already asleep, at level 1");
  const auto done = cycle.slept(cycle.number(), {});
  ASSERT_TRUE(done);
  EXPECT_EQ(cycle.reached_level(), 1);
  EXPECT_EQ(cycle.due(), 0);
  const auto wake = cycle.wake(woken.done());
  ASSERT_TRUE(wake);
  EXPECT_TRUE(wake->waits);
  EXPECT_TRUE(wake->notify_engine);
  EXPECT_FALSE(wake->cancelled);
  EXPECT_EQ(cycle.reached_level(), 1) << "until the process responds";
  ASSERT_TRUE(cycle.woken({}));
  EXPECT_TRUE(cycle.awake());
}

TEST(SleepCycle, AnEngineWithoutMemoryStaysAsleepAndCanBeWokenAgain) {
  SleepCycle cycle;
  Call slept, woken;
  ASSERT_TRUE(cycle.sleep(1, slept.done()));
  ASSERT_TRUE(cycle.slept(cycle.number(), {}));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(cycle.wake(woken.done()));
    ASSERT_TRUE(cycle.woken(failure(ErrorCode::resource_exhausted, "no memory")));
    EXPECT_EQ(cycle.reached_level(), 1);
    EXPECT_FALSE(cycle.awake());
  }
  EXPECT_TRUE(cycle.wake(woken.done())->notify_engine);
  ASSERT_TRUE(cycle.woken({}));
  EXPECT_TRUE(cycle.awake());
}

TEST(SleepCycle, Level2WakesWhenTheNextProcessIsReady) {
  SleepCycle cycle;
  Call slept, woken;
  ASSERT_TRUE(cycle.sleep(2, slept.done()));
  cycle.begin_end();
  EXPECT_TRUE(cycle.ending());
  EXPECT_EQ(cycle.wanted_level(), 2);
  EXPECT_EQ(cycle.reached_level(), 0);
  ASSERT_TRUE(cycle.ended());
  EXPECT_EQ(cycle.reached_level(), 2);
  EXPECT_FALSE(cycle.woken({})) << "nobody waits";
  const auto wake = cycle.wake(woken.done());
  ASSERT_TRUE(wake);
  EXPECT_TRUE(wake->waits);
  EXPECT_TRUE(cycle.waking());
  EXPECT_EQ(cycle.wake(woken.done()).error().message, "the engine is still waking up");
  ASSERT_TRUE(cycle.woken({}));
  EXPECT_TRUE(cycle.awake());
}

TEST(SleepCycle, AWakeWhileTheProcessEndsWaitsForTheNext) {
  SleepCycle cycle;
  Call slept, woken;
  ASSERT_TRUE(cycle.sleep(2, slept.done()));
  cycle.begin_end();
  EXPECT_TRUE(cycle.wake(woken.done())->waits);
  EXPECT_FALSE(cycle.wake(woken.done()));
  EXPECT_TRUE(cycle.ended());
  EXPECT_TRUE(cycle.waking());
  EXPECT_TRUE(cycle.woken({}));
}

TEST(SleepCycle, AWakeCancelsASleepThatHasNotBegun) {
  for (const int level : {1, 2}) {
    SleepCycle cycle;
    Call slept, woken;
    ASSERT_TRUE(cycle.sleep(level, slept.done()));
    const std::uint64_t first = cycle.number();
    const auto wake = cycle.wake(woken.done());
    ASSERT_TRUE(wake && wake->cancelled);
    EXPECT_EQ(wake->notify_engine, level == 1);
    EXPECT_EQ(wake->waits, level == 1) << "the process may sleep already";
    EXPECT_EQ(static_cast<bool>(cycle.woken({})), level == 1);
    ASSERT_TRUE(cycle.sleep(1, slept.done()));
    EXPECT_FALSE(cycle.slept(first, {})) << "the response to the cancelled sleep";
    EXPECT_EQ(cycle.due(), 1);
  }
}

TEST(SleepCycle, AnEngineThatCannotSleepIsAwake) {
  SleepCycle cycle;
  Call slept;
  ASSERT_TRUE(cycle.sleep(1, slept.done()));
  EXPECT_TRUE(cycle.slept(cycle.number(), failure(ErrorCode::unsupported, "no")));
  EXPECT_TRUE(cycle.awake());
}

TEST(SleepCycle, GivingUpReturnsAllCallbacks) {
  SleepCycle cycle;
  Call slept, woken;
  EXPECT_TRUE(cycle.give_up().empty());
  ASSERT_TRUE(cycle.sleep(2, slept.done()));
  cycle.begin_end();
  ASSERT_TRUE(cycle.wake(woken.done()));
  for (const auto& done : cycle.give_up()) done({});
  EXPECT_TRUE(slept.result && woken.result);
  EXPECT_TRUE(cycle.awake());
}

}  // namespace
}  // namespace octavo::remote
