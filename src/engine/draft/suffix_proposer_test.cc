#include "engine/draft/suffix_proposer.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <random>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Text = std::vector<TokenId>;

Text propose(SuffixProposer& proposer, const Text& text, std::uint64_t sequence = 1, int most = 16,
             bool isolated = false) {
  Draft draft{.sequence = sequence, .text = text, .isolated = isolated, .most = most, .tokens = {99}};
  EXPECT_TRUE(proposer.propose({&draft, 1}));
  return draft.tokens;
}

void emit(SuffixProposer& proposer, const Text& text, int prompt_tokens, bool isolated = false) {
  propose(proposer, text, 1000, 1, isolated);
  proposer.end(1000, text, prompt_tokens);
}

TEST(SuffixProposer, GoesOnAsTheTextDidBefore) {
  SuffixProposer proposer({});
  EXPECT_THAT(propose(proposer, {1, 2, 3, 4, 5, 6, 9, 1, 2, 3}), ElementsAre(4, 5, 6));
  EXPECT_THAT(propose(proposer, {1, 2, 3, 4, 5}, 2), IsEmpty());
  EXPECT_THAT(propose(proposer, {5}, 3), IsEmpty());
}

TEST(SuffixProposer, DraftsAsManyAsCameBeforeAlike) {
  const Text text = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3};
  SuffixProposer once({}), twice({.max_spec_factor = 2}), never({.max_spec_factor = 0});
  EXPECT_EQ(propose(once, text).size(), 3u);
  EXPECT_EQ(propose(twice, text).size(), 6u);
  EXPECT_EQ(propose(twice, text, 2, 4).size(), 4u);
  EXPECT_THAT(propose(never, text), IsEmpty());
}

TEST(SuffixProposer, FollowsTheMajorityAsFarAsItIsLikely) {
  // In this text, "1 2" is followed by 3 twice and by 4 once. "1 2 3" is followed by 5 and 6 once each.
  const Text text = {1, 2, 3, 5, 0, 1, 2, 3, 6, 7, 1, 2, 4, 8, 1, 2};
  SuffixProposer any({.max_spec_factor = 2, .min_token_prob = 0});
  EXPECT_THAT(propose(any, text), ElementsAre(3, 6, 7, 1));
  SuffixProposer likely({.max_spec_factor = 2, .min_token_prob = 0.5});
  EXPECT_THAT(propose(likely, text), ElementsAre(3));
  SuffixProposer sure({.min_token_prob = 0.7});
  EXPECT_THAT(propose(sure, text), IsEmpty());
}

TEST(SuffixProposer, LearnsFromPastAnswersAndNotFromPrompts) {
  SuffixProposer proposer({});
  emit(proposer, {7, 7, 8, 8, 1, 2, 3, 4}, 4);
  EXPECT_THAT(propose(proposer, {6, 1, 2}), ElementsAre(3, 4));
  EXPECT_THAT(propose(proposer, {6, 7, 8}, 2), IsEmpty());
  EXPECT_THAT(propose(proposer, {6, 3, 4}, 3), IsEmpty());
}

TEST(SuffixProposer, SaltedRequestsKeepToThemselves) {
  SuffixProposer proposer({});
  emit(proposer, {1, 2, 3, 4}, 0, true);
  EXPECT_THAT(propose(proposer, {6, 1, 2}), IsEmpty());
  emit(proposer, {1, 2, 3, 4}, 0);
  EXPECT_THAT(propose(proposer, {6, 1, 2}, 2), ElementsAre(3, 4));
  EXPECT_THAT(propose(proposer, {6, 1, 2}, 3, 16, true), IsEmpty());
  EXPECT_THAT(propose(proposer, {1, 2, 5, 1, 2}, 4, 16, true), ElementsAre(5, 1));
}

TEST(SuffixProposer, KeepsSoManyAnswers) {
  const auto answer = [](TokenId i) { return Text{10 * i, 10 * i + 1, 10 * i + 2}; };
  const auto knows = [&](SuffixProposer& proposer, TokenId i) {
    return !propose(proposer, {5, 10 * i, 10 * i + 1}, 100 + static_cast<std::uint64_t>(i)).empty();
  };
  for (const int kept : {0, 1, 4, 10}) {
    SuffixProposer proposer({.max_cached_requests = kept});
    for (TokenId i = 1; i <= 30; ++i) {
      emit(proposer, answer(i), 0);
      int known = 0;
      for (TokenId j = 1; j <= i; ++j) known += knows(proposer, j);
      EXPECT_EQ(knows(proposer, i), kept > 0);
      EXPECT_LE(known, kept == 1 ? 2 : kept);
      EXPECT_GE(known, std::min((kept + 1) / 2, i));
    }
  }
}

TEST(SuffixProposer, AnAnswerTooLongToKeepIsLeftOut) {
  SuffixProposer proposer({});
  Text text(SuffixProposer::kKeptTokensMax, 7);
  std::iota(text.begin(), text.end(), 0);
  emit(proposer, text, 0);
  EXPECT_THAT(propose(proposer, {-2, 50, 51}), IsEmpty());
}

// In random texts with few different tokens, every draft must have followed the same suffix earlier in one
// of the texts.
TEST(SuffixProposer, DraftsWhatHasFollowed) {
  std::mt19937 random(4);
  SuffixProposer proposer({.max_cached_requests = 1000, .max_spec_factor = 3});
  std::vector<Text> past;
  std::size_t draft_tokens = 0;
  for (int round = 0; round < 200; ++round) {
    Text text;
    const std::size_t length = 2 + random() % 60, prompt = random() % length;
    while (text.size() < length) {
      text.push_back(static_cast<TokenId>(random() % 6));
      const Text tokens = propose(proposer, text, static_cast<std::uint64_t>(round), 5);
      EXPECT_LE(tokens.size(), 5u);
      draft_tokens += tokens.size();
      if (tokens.empty()) continue;
      Text wanted(text.end() - 2, text.end());
      wanted.insert(wanted.end(), tokens.begin(), tokens.end());
      const auto has = [&](const Text& where) {
        return std::ranges::search(where, wanted).begin() != where.end();
      };
      EXPECT_TRUE(has(text) || std::ranges::any_of(past, has));
    }
    proposer.end(static_cast<std::uint64_t>(round), text, static_cast<int>(prompt));
    past.emplace_back(text.begin() + static_cast<std::ptrdiff_t>(prompt), text.end());
  }
  EXPECT_GT(draft_tokens, 1000u);
}

}  // namespace
}  // namespace octavo
