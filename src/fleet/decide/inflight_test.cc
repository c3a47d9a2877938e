#include "fleet/decide/inflight.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(Inflight, CountsWhatWasSentAndHasNotEnded) {
  Inflight inflight;
  Booking a = inflight.book(2, 100, 40);
  Booking b = inflight.book(2, 10, 10);
  EXPECT_EQ(inflight.load(2).requests, 2);
  EXPECT_EQ(inflight.load(2).prefill_tokens, 50);
  EXPECT_EQ(inflight.load(2).context_tokens, 110);
  EXPECT_EQ(inflight.load(2).own_tokens, 50);
  inflight.first_token(a);
  inflight.grow(a, 5);
  EXPECT_EQ(inflight.load(2).prefill_tokens, 10);
  EXPECT_EQ(inflight.load(2).context_tokens, 115);
  EXPECT_EQ(inflight.load(2).own_tokens, 55);
  inflight.first_token(a);
  inflight.free(a);
  inflight.free(b);
  EXPECT_EQ(inflight.load(2).requests, 0);
  EXPECT_EQ(inflight.load(2).prefill_tokens, 0);
  EXPECT_EQ(inflight.load(2).context_tokens, 0);
  EXPECT_EQ(inflight.load(2).own_tokens, 0);
  EXPECT_EQ(inflight.load(9).requests, 0) << "one that nobody was sent to";
}

TEST(Inflight, CountsWhatPeersHaveSent) {
  Inflight inflight;
  Booking own = inflight.book(1, 100, 40);
  inflight.peer_has(7, 1, {2, 10, 30, 20});
  inflight.peer_has(8, 1, {1, 5, 5, 5});
  inflight.peer_has(8, 3, {4, 0, 9, 9});
  EXPECT_EQ(inflight.own(1), (Load{1, 40, 100, 40}));
  EXPECT_EQ(inflight.of_peers(1), (Load{3, 15, 35, 25}));
  EXPECT_EQ(inflight.load(1), (Load{4, 55, 135, 65}));
  EXPECT_EQ(inflight.load(3), (Load{4, 0, 9, 9})) << "one that this process has sent nothing to";
  inflight.peer_has(7, 1, {1, 0, 15, 10});
  EXPECT_EQ(inflight.of_peers(1), (Load{2, 5, 20, 15})) << "in place of what it had";
  inflight.forget_peer(8);
  EXPECT_EQ(inflight.of_peers(1), (Load{1, 0, 15, 10}));
  EXPECT_EQ(inflight.of_peers(3), Load{});
  inflight.forget(1);
  EXPECT_EQ(inflight.load(1), inflight.own(1));
  inflight.free(own);
  EXPECT_EQ(inflight.load(1), Load{});
}

}  // namespace
}  // namespace octavo::fleet
