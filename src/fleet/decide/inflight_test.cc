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

}  // namespace
}  // namespace octavo::fleet
