#include "speculate/ngram_proposer.h"

#include <gmock/gmock.h>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<TokenId> guess(const NgramOptions& options, std::vector<TokenId> text) {
  std::vector<TokenId> drafts = {99};
  NgramProposer(options).propose(text, drafts);
  return drafts;
}

TEST(NgramProposer, GoesOnAsTheTextDidBefore) {
  EXPECT_THAT(guess({3, 2, 4}, {1, 2, 3, 4, 5, 9, 1, 2}), ElementsAre(3, 4, 5));
}

TEST(NgramProposer, PrefersTheLongestThenTheLatest) {
  EXPECT_THAT(guess({1, 1, 3}, {7, 1, 2, 5, 1, 2, 6, 7, 1, 2}), ElementsAre(5));
  EXPECT_THAT(guess({1, 1, 2}, {7, 1, 2, 5, 1, 2, 6, 7, 1, 2}), ElementsAre(6));
}

TEST(NgramProposer, RepeatsBeyondTheEnd) {
  EXPECT_THAT(guess({5, 2, 3}, {1, 2, 1, 2, 1, 2}), ElementsAre(1, 2, 1, 2, 1));
  EXPECT_THAT(guess({3, 1, 1}, {4, 4}), ElementsAre(4, 4, 4));
}

TEST(NgramProposer, HasNothingToSayWithoutAMatch) {
  EXPECT_THAT(guess({3, 2, 4}, {1, 2, 3, 1}), IsEmpty());
  EXPECT_THAT(guess({3, 1, 4}, {5}), IsEmpty());
}

TEST(NgramProposer, OptionsHaveLimits) {
  EXPECT_TRUE(validate(NgramOptions{}));
  EXPECT_EQ(validate(NgramOptions{0, 1, 1}).error().field, "num_speculative_tokens");
  EXPECT_EQ(validate(NgramOptions{1, 0, 1}).error().field, "prompt_lookup_min");
  EXPECT_EQ(validate(NgramOptions{1, 3, 2}).error().field, "prompt_lookup_max");
}

}  // namespace
}  // namespace octavo
