// tokenizer_test.cc compares ids with PLaMo's own code.
#include "text/plamo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/testing/scratch_directory.h"
#include "text/fixtures.h"
#include "text/gguf_tokenizer.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<boost::json::array> rows_of(const std::string& name) {
  std::ifstream file(fixtures::kRoot / "tokenizers" / name / "tokenizer.jsonl");
  std::vector<boost::json::array> rows;
  for (std::string line; std::getline(file, line);) rows.push_back(boost::json::parse(line).as_array());
  return rows;
}

std::vector<std::int32_t> ids(const Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, false).value();
}

TEST(Plamo, GgufFilesHaveTheSame) {
  for (const std::string name : {"plamo2", "plamo3"}) {
    const auto rows = rows_of(name);
    GgufVocabulary vocabulary{.model = name, .pre = "default"};
    for (const auto& row : rows) {
      const std::string_view token = row[0].as_string(), type = row[2].as_string();
      vocabulary.tokens.push_back(token);
      vocabulary.scores.push_back(row[1].as_double());
      vocabulary.types.push_back(type == "UNKNOWN"                                         ? 2
                                 : type == "CONTROL" || token.starts_with("<|plamo:msg|>") ? 3
                                 : type == "BYTE"                                          ? 6
                                                                                           : 1);
    }
    const auto made = tokenizer_of(vocabulary);
    ASSERT_TRUE(made.has_value()) << made.error().message;
    EXPECT_EQ(made->id_of(made->config().special_token("bos_token")), 1);
    const Tokenizer folder = fixtures::tokenizer(name);
    const auto expected = fixtures::read_json("tokenizers/" + name + "/expected.json");
    for (const auto& one : expected.at("encodings").as_array())
      EXPECT_EQ(ids(*made, fixtures::text(one.at("text"))), fixtures::ids(one.at("plain_ids")));
    for (std::int32_t id = 0; id < folder.vocab_size(); ++id)
      EXPECT_EQ(made->token_bytes(id), folder.token_bytes(id)) << id;
    vocabulary.scores.pop_back();
    EXPECT_THAT(tokenizer_of(vocabulary).error().message, HasSubstr("tokenizer.ggml.scores has"));
  }
}

// Among splits with equal scores, the one with the longest first token is chosen.
TEST(Plamo, TheLongestTokenComesFirst) {
  const Tokenizer tokenizer = fixtures::tokenizer("plamo2");
  const std::int32_t one = *tokenizer.id_of("a"), two = *tokenizer.id_of("aa"),
                     four = *tokenizer.id_of("aaaa");
  EXPECT_THAT(ids(tokenizer, "a"), ElementsAre(one));
  EXPECT_THAT(ids(tokenizer, "aaaaaa"), ElementsAre(four, two));
}

TEST(Plamo, ErrorsNameTheToken) {
  const auto error = [](const std::string& text) {
    TokenizerConfig config;
    config.json = R"({"tokenizer_class": "Plamo2Tokenizer"})";
    const auto made = tokenizer_of_plamo(text, config);
    return made ? "none" : made.error().message;
  };
  for (const char* wrong : {"{}", "[]", R"(["a"])", R"([1, 2])", R"(["a", "b"])", "["})
    EXPECT_THAT(error(std::string("[\"<unk>\", 0, \"UNKNOWN\"]\n") + wrong),
                HasSubstr("tokenizer.jsonl: token 1 must be a list"))
        << wrong;
  EXPECT_THAT(error(R"(["a", 1])"), HasSubstr("there is no token <0x00>"));
  EXPECT_THAT(error("[\"a\", 1]\n[\"a\", 1]\n"), HasSubstr("occurs twice"));
  EXPECT_NE(error(""), "none");
}

}  // namespace
}  // namespace octavo
