#include "serve/text_chunks.h"

#include <gmock/gmock.h>

#include <numeric>

namespace octavo {
namespace {

Tokenizer::Texts text_of(int tokens) {
  Tokenizer::Texts text;
  text.ids.resize(static_cast<std::size_t>(tokens));
  std::iota(text.ids.begin(), text.ids.end(), 0);
  return text;
}

TEST(TextChunks, OnlyLongTextsAreCut) {
  TextChunks texts;
  texts.add(text_of(4), 4);
  texts.add(text_of(9), 4);
  texts.add(text_of(8), 4);
  EXPECT_EQ(texts.lengths, (std::vector<std::vector<int>>{{4}, {4, 4, 1}, {4, 4}}));
  ASSERT_EQ(texts.chunks.size(), 6U);
  EXPECT_THAT(texts.chunks[2].ids, testing::ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(texts.chunks[3].ids, testing::ElementsAre(8));
}

TEST(TextChunks, AMeanCountsTokens) {
  const std::vector<std::vector<float>> vectors{{1, 0}, {0, 4}};
  EXPECT_THAT(mean_of_chunks(vectors, std::vector{3, 1}), testing::ElementsAre(0.75F, 1.0F));
  EXPECT_THAT(mean_of_chunks(std::span(vectors).first(1), std::vector{3}), testing::ElementsAre(1.0F, 0.0F));
}

}  // namespace
}  // namespace octavo
