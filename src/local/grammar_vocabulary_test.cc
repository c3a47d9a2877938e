#include "local/grammar_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "local/load_tokenizer.h"

namespace octavo {
namespace {

// A model may have more or fewer logits than its tokenizer has tokens.
TEST(GrammarVocabulary, EndsWhereTheModelDoes) {
  const Tokenizer tokenizer = load_tokenizer("models/demo").value();
  const int all = tokenizer.vocab_size();
  EXPECT_EQ(grammar_vocabulary(tokenizer, {all - 1}, all + 64).value()->size(), all);
  const auto less = grammar_vocabulary(tokenizer, {all - 1, 3}, all - 1).value();
  EXPECT_EQ(less->size(), all - 1);
  EXPECT_THAT(less->eos(), testing::ElementsAre(3));
  const std::string last = tokenizer.token(all - 1).value();
  EXPECT_TRUE(less->settled_tokens(last + " and more").empty());
}

}  // namespace
}  // namespace octavo
