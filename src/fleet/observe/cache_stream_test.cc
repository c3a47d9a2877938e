#include "fleet/observe/cache_stream.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

using Step = CacheStream::Step;

TEST(CacheStream, BeginsWithAReplayAndPassesOverWhatBothWaysBring) {
  CacheStream stream(true);
  EXPECT_EQ(stream.request_from(), 0U);
  EXPECT_EQ(stream.request_from(), std::nullopt) << "once";
  EXPECT_EQ(stream.live(1), Step::pass);
  EXPECT_EQ(stream.replayed(0), Step::apply);
  EXPECT_EQ(stream.replayed(1), Step::apply);
  stream.replay_ended();
  EXPECT_FALSE(stream.replaying());
  EXPECT_EQ(stream.live(2), Step::apply);
}

TEST(CacheStream, AsksForWhatCameDuringAReplay) {
  CacheStream stream(true);
  stream.request_from();
  EXPECT_EQ(stream.replayed(0), Step::apply);
  EXPECT_EQ(stream.live(1), Step::pass);
  stream.replay_ended();
  EXPECT_EQ(stream.request_from(), 1U);
  EXPECT_EQ(stream.replayed(1), Step::apply);
  stream.replay_ended();
  EXPECT_EQ(stream.request_from(), std::nullopt);
}

TEST(CacheStream, AMessageDuringAnEmptyReplayIsReplayed) {
  CacheStream stream(true);
  stream.request_from();
  EXPECT_EQ(stream.live(0), Step::pass) << "published after the engine had answered the request";
  stream.replay_ended();
  EXPECT_EQ(stream.request_from(), 0U);
  EXPECT_EQ(stream.replayed(0), Step::apply);
  stream.replay_ended();
  EXPECT_EQ(stream.live(1), Step::apply);
}

TEST(CacheStream, ChecksForMissedMessagesUntilTheSubscriptionIsActive) {
  CacheStream stream(true);
  stream.request_from();
  EXPECT_EQ(stream.replayed(0), Step::apply);
  stream.replay_ended();
  EXPECT_FALSE(stream.subscribed());
  stream.check();
  EXPECT_EQ(stream.request_from(), 1U);
  EXPECT_EQ(stream.replayed(1), Step::apply);
  stream.replay_ended();
  EXPECT_EQ(stream.live(2), Step::apply);
  EXPECT_TRUE(stream.subscribed());
  stream.start_over();
  EXPECT_FALSE(stream.subscribed());
}

TEST(CacheStream, GoesOnFromWhereItIsKnown) {
  CacheStream stream(true);
  stream.resume(7);
  EXPECT_EQ(stream.request_from(), 6U) << "the last known one, for a proof";
  EXPECT_EQ(stream.live(9), Step::pass);
  EXPECT_EQ(stream.replayed(6), Step::apply);
  EXPECT_EQ(stream.replayed(7), Step::apply);
  stream.replay_ended();
  EXPECT_EQ(stream.request_from(), 8U);

  CacheStream forgotten(true);
  forgotten.resume(7);
  EXPECT_EQ(forgotten.request_from(), 6U);
  EXPECT_EQ(forgotten.replayed(8), Step::clear_and_apply) << "it tells no more of what lies between";
}

TEST(CacheStream, FillsAGap) {
  CacheStream stream(true);
  stream.request_from();
  stream.replay_ended();
  EXPECT_EQ(stream.live(0), Step::apply);
  EXPECT_EQ(stream.live(3), Step::pass);
  EXPECT_EQ(stream.request_from(), 1U);
  EXPECT_EQ(stream.replayed(1), Step::apply);
  EXPECT_EQ(stream.replayed(2), Step::apply);
  EXPECT_EQ(stream.replayed(3), Step::apply);
  stream.replay_ended();
  EXPECT_EQ(stream.live(4), Step::apply);
}

TEST(CacheStream, AGapThatNobodyCanFillVoidsWhatWasKnown) {
  CacheStream forgetful(true);
  forgetful.request_from();
  EXPECT_EQ(forgetful.replayed(5), Step::apply) << "nothing was known before";
  forgetful.replay_ended();
  EXPECT_EQ(forgetful.live(9), Step::pass);
  EXPECT_EQ(forgetful.request_from(), 6U);
  EXPECT_EQ(forgetful.replayed(8), Step::clear_and_apply);

  CacheStream mute(true);  // an endpoint whose replays are empty
  mute.request_from();
  mute.replay_ended();
  EXPECT_EQ(mute.live(0), Step::apply);
  EXPECT_EQ(mute.live(2), Step::pass);
  mute.request_from();
  mute.replay_ended();
  EXPECT_EQ(mute.live(3), Step::clear_and_apply);
  EXPECT_EQ(mute.live(4), Step::apply);

  CacheStream none(false);
  EXPECT_EQ(none.request_from(), std::nullopt);
  EXPECT_EQ(none.live(7), Step::apply);
  EXPECT_EQ(none.live(9), Step::clear_and_apply);
}

TEST(CacheStream, NumbersThatGoBackAreANewBeginning) {
  CacheStream with(true);
  with.request_from();
  with.replay_ended();
  EXPECT_EQ(with.live(0), Step::apply);
  EXPECT_EQ(with.live(1), Step::apply);
  EXPECT_EQ(with.live(0), Step::clear);
  EXPECT_EQ(with.request_from(), 0U);

  CacheStream without(false);
  without.live(8);
  EXPECT_EQ(without.live(3), Step::clear_and_apply);
  EXPECT_EQ(without.live(4), Step::apply);
}

}  // namespace
}  // namespace octavo::fleet
