#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/fixtures.h"
#include "text/utf8.h"

namespace octavo {
namespace {

using Ids = std::vector<std::int32_t>;

// Returns all pieces together, and checks that each is valid UTF-8.
std::string stream(const Tokenizer& tokenizer, const Ids& ids, bool skip_special_tokens,
                   const Ids& prompt = {}) {
  Detokenizer detokenizer(tokenizer, skip_special_tokens, prompt);
  std::string text;
  for (const std::int32_t id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_EQ(invalid_utf8_at(piece), std::nullopt);
    text += piece;
  }
  return text + detokenizer.finish();
}

class DetokenizerTest : public testing::TestWithParam<std::string> {
 protected:
  const Tokenizer tokenizer = fixtures::tokenizer(GetParam());

  Ids random_ids(std::mt19937& random) {
    Ids ids(random() % 20 + 1);
    const auto size = static_cast<std::uint32_t>(tokenizer.vocab_size());
    const std::uint64_t low = random() % size, range = random() % 2 ? size + 3 : 40;
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>((low + random() % range) % (size + 3));
    return ids;
  }
};

TEST_P(DetokenizerTest, JoinsToTheDecodeOfText) {
  const boost::json::value expected = fixtures::read_json("tokenizers/" + GetParam() + "/expected.json");
  for (const auto& one : expected.at("encodings").as_array()) {
    const Ids ids = fixtures::ids(one.at("ids"));
    EXPECT_EQ(stream(tokenizer, ids, false), fixtures::text(one.at("decoded")));
    EXPECT_EQ(stream(tokenizer, ids, true), fixtures::text(one.at("decoded_plain")));
  }
}

TEST_P(DetokenizerTest, JoinsToTheDecodeOfAnyIds) {
  std::mt19937 random(1);
  for (int round = 0; round < 5'000; ++round) {
    const Ids ids = random_ids(random);
    const bool skip = random() % 2 == 0;
    ASSERT_EQ(stream(tokenizer, ids, skip), tokenizer.decode(ids, skip).value())
        << testing::PrintToString(ids);
  }
}

// The prompt ends at a complete character.
TEST_P(DetokenizerTest, ContinuesAPrompt) {
  if (GetParam() == "gpt1") GTEST_SKIP() << "its decoder needs the whole sequence";
  const std::string prompt_text = GetParam() == "bert" ? "the house" : "The house was";
  const Ids prompt = tokenizer.encode(prompt_text, false).value();
  const std::string before = tokenizer.decode(prompt, true).value();
  std::mt19937 random(2);
  for (int round = 0; round < 2'000; ++round) {
    const Ids ids = random_ids(random);
    Ids all = prompt;
    all.insert(all.end(), ids.begin(), ids.end());
    ASSERT_EQ(before + stream(tokenizer, ids, true, prompt), tokenizer.decode(all, true).value());
  }
}

INSTANTIATE_TEST_SUITE_P(All, DetokenizerTest, testing::ValuesIn(fixtures::kTokenizers),
                         [](const auto& test) { return test.param; });

TEST(Detokenizer, SendsByteLevelTextAtOnce) {
  const Tokenizer gpt2 = fixtures::tokenizer("gpt2");
  Detokenizer detokenizer(gpt2, true);
  EXPECT_EQ(detokenizer.push(gpt2.id_of("Ġthe").value()), " the");
  // The bytes of 🫠 are F0 9F AB A0.
  EXPECT_EQ(detokenizer.push(gpt2.id_of("ð").value()), "");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("Ł").value()), "");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("«").value()), "");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("ł").value()), "🫠");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("ð").value()), "");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("a").value()),
            "\uFFFD"
            "a");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("ð").value()), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD");
  EXPECT_EQ(detokenizer.finish(), "");
}

TEST(Detokenizer, SendsAByteRunWhenItEnds) {
  const Tokenizer llama2 = fixtures::tokenizer("llama2");
  const auto byte = [&](const char* name) { return llama2.id_of(name).value(); };
  Detokenizer detokenizer(llama2, true);
  EXPECT_EQ(detokenizer.push(llama2.id_of("▁the").value()), "the");
  EXPECT_EQ(detokenizer.push(byte("<0xC3>")), "");
  EXPECT_EQ(detokenizer.push(byte("<0xA9>")), "");
  EXPECT_EQ(detokenizer.push(llama2.id_of("▁the").value()), "é the");
  EXPECT_EQ(detokenizer.push(byte("<0xC3>")), "");
  EXPECT_EQ(detokenizer.push(byte("<0xC3>")), "");
  EXPECT_EQ(detokenizer.finish(), "\uFFFD\uFFFD");
}

TEST(Detokenizer, CompletesACharacterOfThePrompt) {
  const Tokenizer gpt2 = fixtures::tokenizer("gpt2");
  const Ids prompt = {gpt2.id_of("a").value(), gpt2.id_of("Ã").value()};
  Detokenizer detokenizer(gpt2, true, prompt);
  EXPECT_EQ(detokenizer.push(gpt2.id_of("©").value()), "é");
}

TEST(Detokenizer, IgnoresIdsWithoutAToken) {
  const Tokenizer gpt2 = fixtures::tokenizer("gpt2");
  Detokenizer detokenizer(gpt2, true);
  EXPECT_EQ(detokenizer.push(-1), "");
  EXPECT_EQ(detokenizer.push(2147483647), "");
  EXPECT_EQ(detokenizer.push(gpt2.id_of("a").value()), "a");
}

}  // namespace
}  // namespace octavo
