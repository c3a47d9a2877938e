// Tests the draft model on the simulated device. Each token depends on all inputs, so a wrong block,
// position or rollback causes a wrong draft token.
#include "engine/draft/draft_model.h"

#include <gmock/gmock.h>

#include <map>
#include <random>

#include "engine/testing/rig.h"

namespace octavo {
namespace {

struct DraftBench {
  explicit DraftBench(int num_blocks, int max_tokens = 64, int max_model_len = 512)
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

TEST(DraftModel, DraftsWhatItsModelSays) {
  DraftBench bench(8);
  const std::vector<TokenId> text = some_prompt(1, 20);
  Draft draft = bench.draft(1, text, 4);
  ASSERT_TRUE(bench.model.propose({&draft, 1}));
  EXPECT_EQ(draft.tokens, expected(text, 4));
  EXPECT_GT(bench.model.blocks_used(), 0);
  bench.model.end(1, text, 20);
  EXPECT_EQ(bench.model.blocks_used(), 0);
  bench.model.end(2, text, 20);  // the draft model does not know this sequence
}

TEST(DraftModel, ALongPromptIsReadInPartsWhileOthersGetDrafts) {
  DraftBench bench(32, 40);
  std::vector<TokenId> longer = some_prompt(1, 100);
  std::vector<TokenId> shorter = some_prompt(2, 5);
  for (int turn = 0; turn < 4; ++turn) {
    Draft drafts[] = {bench.draft(1, longer, 3), bench.draft(2, shorter, 3)};
    ASSERT_TRUE(bench.model.propose(drafts));
    EXPECT_EQ(drafts[0].tokens, turn < 2 ? std::vector<TokenId>() : expected(longer, 3)) << turn;
    EXPECT_EQ(drafts[1].tokens, expected(shorter, 3)) << turn;
    longer.push_back(turn);
    shorter.push_back(expected(shorter, 1).front());
  }
}

TEST(DraftModel, WhatItHasReadOfAPromptIsNotReadAgain) {
  DraftBench bench(32, 40);
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

TEST(DraftModel, BeyondItsContextThereAreNoDrafts) {
  DraftBench bench(32, 64, 30);
  for (const int length : {25, 28, 30, 31}) {
    const std::vector<TokenId> text = some_prompt(1, length);
    Draft draft = bench.draft(static_cast<std::uint64_t>(length), text, 4);
    ASSERT_TRUE(bench.model.propose({&draft, 1}));
    EXPECT_EQ(draft.tokens, expected(text, std::clamp(30 - length, 0, 4)));
  }
}

TEST(DraftModel, WithoutBlocksThoseNotAskedForLongestAreForgotten) {
  DraftBench bench(4);
  std::map<std::uint64_t, std::vector<TokenId>> texts;
  for (std::uint64_t i = 1; i <= 3; ++i) texts[i] = some_prompt(static_cast<unsigned>(i), 20);
  // Returns the sequences that get draft tokens. Each sequence has two blocks.
  const auto drafted = [&](const std::vector<std::uint64_t>& sequences) {
    std::vector<Draft> drafts;
    for (const std::uint64_t i : sequences) drafts.push_back(bench.draft(i, texts[i], 2));
    EXPECT_TRUE(bench.model.propose(drafts));
    std::vector<std::uint64_t> found;
    for (const Draft& draft : drafts) {
      std::vector<TokenId>& text = texts[draft.sequence];
      if (!draft.tokens.empty()) found.push_back(draft.sequence);
      EXPECT_TRUE(draft.tokens.empty() || draft.tokens == expected(text, 2));
      text.push_back(7);
    }
    return found;
  };
  using testing::ElementsAre;
  EXPECT_THAT(drafted({1}), ElementsAre(1));
  EXPECT_THAT(drafted({2}), ElementsAre(2));
  EXPECT_THAT(drafted({3}), ElementsAre(3));  // evicts sequence 1
  EXPECT_THAT(drafted({2, 3}), ElementsAre(2, 3));
  EXPECT_EQ(drafted({1, 2, 3}).size(), 2u);
  bench.model.end(2, texts[2], 20);
  EXPECT_THAT(drafted({1, 3}), ElementsAre(1, 3));
}

// Sequences start, grow by accepted or other tokens, pause and end, in any order.
TEST(DraftModel, EveryDraftIsTheModelsOwn) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    DraftBench bench(seed % 2 == 0 ? 12 : 64, 24);
    std::map<std::uint64_t, std::vector<TokenId>> texts;
    std::uint64_t last = 0;
    std::size_t draft_tokens = 0;
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
        draft_tokens += draft.tokens.size();
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
    EXPECT_GT(draft_tokens, 500u);
    for (const auto& [sequence, text] : texts) bench.model.end(sequence, text, 0);
    EXPECT_EQ(bench.model.blocks_used(), 0);
  }
}

}  // namespace
}  // namespace octavo
