#include "text/tokenizer_config.h"

#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

class TokenizerConfigTest : public testing::Test {
 protected:
  void write(std::string_view name, std::string_view text) { directory.write(name, text); }

  ScratchDirectory directory;
};

TEST_F(TokenizerConfigTest, AllFilesAreOptional) {
  const auto config = read_tokenizer_config(directory.path());
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->json, "");
  EXPECT_EQ(config->chat_template(false), "");
  EXPECT_EQ(config->special_token("bos_token"), "");
}

TEST_F(TokenizerConfigTest, ReadsTokensInBothForms) {
  write("tokenizer_config.json", R"({"bos_token": {"content": "<s>", "special": true}, "eos_token": "</s>",
      "pad_token": null, "add_bos_token": true, "chat_template": "hello"})");
  write("special_tokens_map.json", R"({"unk_token": "<unk>"})");
  const auto config = read_tokenizer_config(directory.path());
  ASSERT_TRUE(config.has_value()) << config.error().message;
  EXPECT_EQ(config->special_token("bos_token"), "<s>");
  EXPECT_EQ(config->special_token("eos_token"), "</s>");
  EXPECT_EQ(config->special_token("unk_token"), "<unk>");
  EXPECT_EQ(config->special_token("pad_token"), "");
  EXPECT_EQ(config->special_tokens.size(), 3u);
  EXPECT_EQ(config->chat_template(true), "hello");
}

TEST_F(TokenizerConfigTest, ChoosesAmongNamedTemplates) {
  write("tokenizer_config.json", R"({"chat_template": [{"name": "default", "template": "d"},
      {"name": "tool_use", "template": "t"}, {"name": "rag", "template": "r"}]})");
  const auto config = read_tokenizer_config(directory.path());
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->chat_template(false), "d");
  EXPECT_EQ(config->chat_template(true), "t");
}

TEST_F(TokenizerConfigTest, TemplateFilesWin) {
  write("tokenizer_config.json", R"({"chat_template": "in the JSON"})");
  write("chat_template.json", R"({"chat_template": "of the processor"})");
  EXPECT_EQ(read_tokenizer_config(directory.path())->chat_template(false), "in the JSON");
  write("preprocessor_config.json", "{}");
  EXPECT_EQ(read_tokenizer_config(directory.path())->chat_template(false), "of the processor");
  write("chat_template.jinja", "in the file");
  write("additional_chat_templates/tool_use.jinja", "with tools");
  const auto config = read_tokenizer_config(directory.path());
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->chat_template(false), "in the file");
  EXPECT_EQ(config->chat_template(true), "with tools");
}

TEST_F(TokenizerConfigTest, RefusesFilesThatAreWrong) {
  for (const char* json : {"", "[]", "{", R"({"chat_template": 5})", R"({"chat_template": [{"name": "x"}]})",
                           R"({"chat_template": ["x"]})"}) {
    write("tokenizer_config.json", json);
    const auto config = read_tokenizer_config(directory.path());
    ASSERT_FALSE(config.has_value()) << json;
    EXPECT_EQ(config.error().code, ErrorCode::corrupt) << json;
    EXPECT_NE(config.error().message.find("tokenizer_config.json"), std::string::npos);
  }
}

TEST_F(TokenizerConfigTest, ReadsNoFileLargerThanItsLimit) {
  write("file", "12345");
  EXPECT_EQ(read_text_file(directory / "file", 5).value(), "12345");
  EXPECT_EQ(read_text_file(directory / "file", 4).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_text_file(directory / "nothing", 4).error().code, ErrorCode::not_found);
  EXPECT_FALSE(read_text_file(directory.path(), 4).has_value());
}

}  // namespace
}  // namespace octavo
