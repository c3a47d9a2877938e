// Compares Kimi's tiktoken.model with tiktoken: tests/data/text/tiktoken, from
// tools/goldens/make_tiktoken_golden.py.
#include "text/tiktoken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace octavo {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr const char* kFolder = "tests/data/text/tiktoken";

std::string read(const std::string& name) {
  return read_text_file(std::string(kFolder) + "/" + name, 1 << 20).value();
}

TEST(Tiktoken, GivesTheIdsOfTiktoken) {
  const Tokenizer tokenizer = Tokenizer::load(kFolder).value();
  const int first = tokenizer.vocab_size() - 256;
  EXPECT_EQ(tokenizer.id_of(tokenizer.config().special_token("bos_token")), first);
  EXPECT_EQ(tokenizer.id_of(tokenizer.config().special_token("eos_token")), first + 1);
  EXPECT_EQ(tokenizer.id_of("<|im_end|>"), first + 2);
  EXPECT_EQ(tokenizer.id_of(fmt::format("<|reserved_token_{}|>", first + 5)), first + 5);
  const json::value golden = json::parse(read("golden.json"));
  ASSERT_GE(golden.get_array().size(), 12U);
  for (const json::value& one : golden.get_array()) {
    const std::string text(one.at(0).get_string());
    const auto ids = json::value_to<std::vector<std::int32_t>>(one.at(1));
    EXPECT_EQ(tokenizer.encode(text, true).value(), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids, false).value(), text);
  }
}

TEST(Tiktoken, ErrorsNameTheLineAndTheClass) {
  const TokenizerConfig kimi = read_tokenizer_config(kFolder).value();
  const std::string file = read("tiktoken.model");
  EXPECT_TRUE(tokenizer_of_tiktoken(file, kimi));
  const auto error = [&](std::string_view text) { return tokenizer_of_tiktoken(text, kimi).error().message; };
  EXPECT_THAT(error(""), HasSubstr("the file has no tokens"));
  EXPECT_THAT(error("IQ== 0\nIg== 2\n"),
              HasSubstr("line 2 must be a token in base64 and the token's rank, 1"));
  EXPECT_THAT(error("IQ==\n"), HasSubstr("line 1"));
  EXPECT_THAT(error("? 0\n"), HasSubstr("line 1"));
  EXPECT_THAT(error("IQ== 0\nIQ== 1\n"), HasSubstr("twice"));
  TokenizerConfig qwen;
  qwen.json = R"({"tokenizer_class": "QWenTokenizer"})";
  const auto other = tokenizer_of_tiktoken(file, qwen);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, ErrorCode::unsupported);
  EXPECT_THAT(other.error().message, HasSubstr("tokenizer_class TikTokenTokenizer"));
  EXPECT_THAT(tokenizer_of_tiktoken(file, {}).error().message, HasSubstr("tokenizer_class TikTokenTokenizer"));
}

}  // namespace
}  // namespace octavo
