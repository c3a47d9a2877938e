#include "engine/draft/ngram_proposer.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> propose(const NgramOptions& options, int most, const std::vector<TokenId>& text) {
  Draft draft{.text = text, .most = most, .tokens = {99}};
  EXPECT_TRUE(NgramProposer(options).propose({&draft, 1}));
  return draft.tokens;
}

TEST(NgramProposer, GoesOnAsTheTextDidBefore) {
  EXPECT_THAT(propose({2, 4}, 3, {1, 2, 3, 4, 5, 9, 1, 2}), ElementsAre(3, 4, 5));
}

TEST(NgramProposer, PrefersTheLongestThenTheLatest) {
  EXPECT_THAT(propose({1, 3}, 1, {7, 1, 2, 5, 1, 2, 6, 7, 1, 2}), ElementsAre(5));
  EXPECT_THAT(propose({1, 2}, 1, {7, 1, 2, 5, 1, 2, 6, 7, 1, 2}), ElementsAre(6));
}

TEST(NgramProposer, RepeatsBeyondTheEnd) {
  EXPECT_THAT(propose({2, 3}, 5, {1, 2, 1, 2, 1, 2}), ElementsAre(1, 2, 1, 2, 1));
  EXPECT_THAT(propose({1, 1}, 3, {4, 4}), ElementsAre(4, 4, 4));
}

TEST(NgramProposer, SaysNothingUnasked) { EXPECT_THAT(propose({2, 4}, 0, {1, 2, 3, 1, 2}), IsEmpty()); }

TEST(NgramProposer, HasNothingToSayWithoutAMatch) {
  EXPECT_THAT(propose({2, 4}, 3, {1, 2, 3, 1}), IsEmpty());
  EXPECT_THAT(propose({1, 4}, 3, {5}), IsEmpty());
}

}  // namespace
}  // namespace octavo
