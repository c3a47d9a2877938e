#include "sample/sequence_sampling.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

constexpr int kVocab = 100;
using Tokens = std::vector<TokenId>;

// Also checks that each split of `text` into output and draft tokens has the same bans.
Tokens bans(const SamplingParams& params, const Tokens& text, const Tokens& eos = {}) {
  const SequenceSampling sequence(params, Tokens{1, 2, 3}, eos, 0, kVocab);
  Tokens found{77};
  sequence.find_bans(text, {}, found);
  EXPECT_LE(found.size(), sequence.bans_max());
  for (std::size_t output = 0; output < text.size(); ++output) {
    Tokens with_drafts;
    const std::span<const TokenId> all(text);
    sequence.find_bans(all.first(output), all.subspan(output), with_drafts);
    EXPECT_EQ(with_drafts, found) << output << " tokens of output";
  }
  return found;
}

TEST(SequenceSampling, SeedOfAnAnswer) {
  SamplingParams params;
  params.seed = 41;
  EXPECT_EQ(answer_seed(params, 0, 1), 41u);
  EXPECT_EQ(answer_seed(params, 2, 999), 43u);
  params.seed.reset();
  EXPECT_NE(answer_seed(params, 0, 1), answer_seed(params, 1, 1));
  EXPECT_NE(answer_seed(params, 0, 1), answer_seed(params, 0, 2));
  EXPECT_EQ(answer_seed(params, 3, 7), answer_seed(params, 3, 7));
}

TEST(SequenceSampling, RemembersOnlyWhatPenaltiesNeed) {
  SamplingParams params;
  const Tokens prompt{5, 6, 5};
  SequenceSampling plain(params, prompt, {}, 0, kVocab);
  plain.append(7);
  EXPECT_THAT(plain.history().ids(), IsEmpty());

  params.penalties.presence = 1;
  SequenceSampling presence(params, prompt, {}, 0, kVocab);
  EXPECT_THAT(presence.history().ids(), IsEmpty());
  presence.append(7);
  EXPECT_THAT(presence.history().ids(), ElementsAre(7));

  params.penalties.repetition = 1.5;
  SequenceSampling repetition(params, prompt, {}, 0, kVocab);
  for (const TokenId id : {7, 5, 7, kVocab}) repetition.append(id);
  EXPECT_THAT(repetition.history().ids(), ElementsAre(5, 6, 7));
  EXPECT_THAT(repetition.history().counts(), ElementsAre(1, 0, 2));
}

TEST(SequenceSampling, BadWordsBanTheirLastTokenWhenAboutToComplete) {
  SamplingParams params;
  params.tokens.bad_word_ids = {{9}, {4, 5, 6}, {5, 8}, {5, 6}, {}};
  EXPECT_THAT(bans(params, {}), ElementsAre(9));
  EXPECT_THAT(bans(params, {5}), ElementsAre(6, 8, 9));
  EXPECT_THAT(bans(params, {4, 5}), ElementsAre(6, 8, 9));
  EXPECT_THAT(bans(params, {4, 5, 1}), ElementsAre(9));
}

TEST(SequenceSampling, PromptIsNoPartOfABadWord) {
  SamplingParams params;
  params.tokens.bad_word_ids = {{3, 4}};
  EXPECT_THAT(bans(params, {}), IsEmpty());
  EXPECT_THAT(bans(params, {3}), ElementsAre(4));
}

TEST(SequenceSampling, MinTokensBansTheEnds) {
  SamplingParams params;
  params.min_tokens = 2;
  params.stop_token_ids = {7, 11};
  params.tokens.bad_word_ids = {{7}};
  EXPECT_THAT(bans(params, {0}, {2, kVocab}), ElementsAre(2, 7, 11));
  EXPECT_THAT(bans(params, {0, 0}, {2}), ElementsAre(7));
}

TEST(SequenceSampling, BeginSuppressTokensAreBannedFirst) {
  SamplingParams params;
  params.tokens.begin_suppress_tokens = {5, kVocab, 3};
  params.tokens.bad_word_ids = {{4}};
  EXPECT_THAT(bans(params, {}), ElementsAre(3, 4, 5));
  EXPECT_THAT(bans(params, {1}), ElementsAre(4));
}

TEST(SequenceSampling, BiasAndAllowedTokens) {
  SamplingParams params;
  params.tokens.logit_bias = {{8, 2.f}, {3, -1.f}, {8, 4.f}, {kVocab, 1.f}};
  params.tokens.allowed_token_ids = {0, 31, 32, 99};
  const SequenceSampling sequence(params, {}, {}, 0, kVocab);
  EXPECT_THAT(sequence.bias(), ElementsAre(Pair(3, -1.f), Pair(8, 2.f)));
  EXPECT_THAT(sequence.allowed(), ElementsAre(0x80000001u, 1u, 0u, 8u));
}

}  // namespace
}  // namespace octavo
