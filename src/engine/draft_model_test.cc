// The draft model's bookkeeping over the simulated device, which says what it has been told: a wrong block,
// place or rollback shows as a wrong guess.
#include "engine/draft_model.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "engine/test_rig.h"

namespace octavo {
namespace {

struct Bench {
  explicit Bench(int num_blocks, int max_tokens = 64, int max_model_len = 512)
      : model(std::make_unique<SimulatedExecutor>(SimulatedExecutorOptions{kVocab, kBlock, num_blocks}),
              {.block_size = kBlock,
               .num_blocks = num_blocks,
               .groups = {{}},
               .max_tokens = max_tokens,
               .max_model_len = max_model_len,
               .vocab_size = kVocab}) {}

  Draft draft(std::uint64_t sequence, std::span<const TokenId> text, int most) {
    return {.sequence = sequence, .text = text, .sampling = &greedy, .most = most};
  }

  DraftModel model;
  SamplingParams greedy;
};

TEST(DraftModel, GuessesWhatItsModelSays) {
  Bench bench(8);
  const std::vector<TokenId> text = some_prompt(1, 20);
  Draft draft = bench.draft(1, text, 4);
  ASSERT_TRUE(bench.model.propose({&draft, 1}));
  EXPECT_EQ(draft.tokens, expected(text, 4));
  EXPECT_GT(bench.model.blocks_used(), 0);
  bench.model.end(1, text, 20);
  EXPECT_EQ(bench.model.blocks_used(), 0);
  bench.model.end(2, text, 20);  // that it has never seen
}

TEST(DraftModel, ALongPromptIsReadInPartsWhileOthersGetGuesses) {
  Bench bench(32, 40);
  const std::vector<TokenId> longer = some_prompt(1, 100);
  std::vector<TokenId> shorter = some_prompt(2, 5);
  for (int turn = 0; turn < 4; ++turn) {
    Draft drafts[] = {bench.draft(1, longer, 3), bench.draft(2, shorter, 3)};
    ASSERT_TRUE(bench.model.propose(drafts));
    EXPECT_EQ(drafts[0].tokens, turn < 2 ? std::vector<TokenId>() : expected(longer, 3)) << turn;
    EXPECT_EQ(drafts[1].tokens, expected(shorter, 3)) << turn;
    shorter.push_back(drafts[1].tokens.front());
  }
}

TEST(DraftModel, WhatItHasReadOfAPromptIsNotReadAgain) {
  Bench bench(32, 40);
  const std::vector<TokenId> text = some_prompt(1, 70);
  for (const Hash128 identity : {Hash128{}, Hash128{1, 2}}) {
    for (std::uint64_t sequence = 1; sequence <= 3; ++sequence) {
      int turns = 0;
      Draft draft = bench.draft(sequence, text, 2);
      draft.identity = identity;
      for (; draft.tokens.empty(); ++turns) ASSERT_TRUE(bench.model.propose({&draft, 1}));
      EXPECT_EQ(draft.tokens, expected(text, 2));
      EXPECT_EQ(turns, sequence == 1 ? 2 : 1);
      bench.model.end(sequence, text, 70);
    }
  }
}

TEST(DraftModel, BeyondItsContextThereAreNoGuesses) {
  Bench bench(32, 64, 30);
  for (const int length : {25, 28, 30, 31}) {
    const std::vector<TokenId> text = some_prompt(1, length);
    Draft draft = bench.draft(static_cast<std::uint64_t>(length), text, 4);
    ASSERT_TRUE(bench.model.propose({&draft, 1}));
    EXPECT_EQ(draft.tokens, expected(text, std::clamp(30 - length, 0, 4)));
  }
}

TEST(DraftModel, WithoutBlocksThoseNotAskedForLongestAreForgotten) {
  Bench bench(4);
  const std::vector<TokenId> a = some_prompt(1, 30), b = some_prompt(2, 30), c = some_prompt(3, 30);
  Draft of_a = bench.draft(1, a, 2), of_b = bench.draft(2, b, 2), of_c = bench.draft(3, c, 2);
  ASSERT_TRUE(bench.model.propose({&of_a, 1}));
  ASSERT_TRUE(bench.model.propose({&of_b, 1}));
  ASSERT_TRUE(bench.model.propose({&of_c, 1}));  // in place of a
  EXPECT_EQ(of_c.tokens, expected(c, 2));
  Draft all[] = {of_a, of_b, of_c};
  ASSERT_TRUE(bench.model.propose(all));  // for three there is no room
  EXPECT_THAT(all[0].tokens, testing::IsEmpty());
  EXPECT_EQ(all[1].tokens, expected(b, 2));
  EXPECT_EQ(all[2].tokens, expected(c, 2));
  bench.model.end(2, b, 30);
  ASSERT_TRUE(bench.model.propose(all));
  EXPECT_EQ(all[0].tokens, expected(a, 2));
}

// Sequences come, grow by what was guessed or by something else, pause and end, in any order.
TEST(DraftModel, EveryGuessIsTheModelsOwn) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    Bench bench(seed % 2 == 0 ? 12 : 64, 24);
    std::map<std::uint64_t, std::vector<TokenId>> texts;
    std::uint64_t last = 0;
    std::size_t guesses = 0;
    for (int turn = 0; turn < 300; ++turn) {
      if (texts.size() < 8 && random() % 3 == 0)
        texts[++last] = some_prompt(static_cast<unsigned>(random()), 1 + static_cast<int>(random() % 60));
      std::vector<Draft> drafts;
      for (const auto& [sequence, text] : texts)
        if (random() % 4 != 0) drafts.push_back(bench.draft(sequence, text, static_cast<int>(random() % 6)));
      std::ranges::shuffle(drafts, random);
      ASSERT_TRUE(bench.model.propose(drafts));
      for (const Draft& draft : drafts) {
        std::vector<TokenId>& text = texts[draft.sequence];
        guesses += draft.tokens.size();
        if (!draft.tokens.empty()) {
          EXPECT_EQ(draft.tokens, expected(text, draft.most));
        }
        const std::size_t right = random() % (draft.tokens.size() + 1);
        text.insert(text.end(), draft.tokens.begin(),
                    draft.tokens.begin() + static_cast<std::ptrdiff_t>(right));
        text.push_back(random() % 2 == 0 ? expected(text, 1).front()
                                         : static_cast<TokenId>(random() % kVocab));
      }
      std::erase_if(texts, [&](const auto& entry) {
        if (random() % 25 != 0) return false;
        bench.model.end(entry.first, entry.second, 0);
        return true;
      });
    }
    EXPECT_GT(guesses, 500u);
    for (const auto& [sequence, text] : texts) bench.model.end(sequence, text, 0);
    EXPECT_EQ(bench.model.blocks_used(), 0);
  }
}

}  // namespace
}  // namespace octavo
