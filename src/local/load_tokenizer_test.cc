#include "local/load_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/testing/scratch_directory.h"
#include "weights/testing/gguf.h"

namespace octavo {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<Tokenizer> load(const GgufBuilder& file) {
  const ScratchDirectory directory;
  directory.write("model.gguf", file.build());
  return load_tokenizer(directory / "model.gguf");
}

GgufBuilder byte_pairs() {
  GgufBuilder file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<s>", "</s>"})
      .texts("tokenizer.ggml.merges", {"a b"});
  std::string types = GgufBuilder::raw(GgufType::i32) + GgufBuilder::raw(std::uint64_t{5});
  for (const std::int32_t type : {1, 1, 1, 3, 3}) types += GgufBuilder::raw(type);
  file.value("tokenizer.ggml.token_type", GgufType::list, types);
  file.u32("tokenizer.ggml.bos_token_id", 3).u32("tokenizer.ggml.eos_token_id", 4);
  file.value("tokenizer.ggml.add_bos_token", GgufType::boolean, "\x01");
  file.text("tokenizer.chat_template", "plain").text("tokenizer.chat_template.tool_use", "tools");
  file.texts("tokenizer.chat_templates", {"tool_use"});
  return file;
}

TEST(LoadTokenizer, OfAGgufFile) {
  const auto tokenizer = load(byte_pairs());
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("abba", true).value(), ElementsAre(3, 2, 1, 0));
  EXPECT_THAT(tokenizer->encode("</s>a", false).value(), ElementsAre(4, 0));
  EXPECT_EQ(tokenizer->id_of(tokenizer->config().special_token("bos_token")), 3);
  EXPECT_EQ(tokenizer->id_of(tokenizer->config().special_token("eos_token")), 4);
  EXPECT_EQ(tokenizer->config().chat_template(false), "plain");
  EXPECT_EQ(tokenizer->config().chat_template(true), "tools");
}

TEST(LoadTokenizer, TheTokenizersEndTokenEndsTexts) {
  const auto tokenizer = load(byte_pairs());
  std::vector<std::int32_t> ids{2, 7};
  add_eos_token(*tokenizer, ids);
  add_eos_token(*tokenizer, ids);
  EXPECT_THAT(ids, ElementsAre(2, 4, 7));
}

// For a missing special token, llama.cpp writes 4294967295. Other programs write the size of the
// vocabulary.
TEST(LoadTokenizer, SpecialIdsBeyondTheVocabularyAreLeftOut) {
  for (const char* name : {"padding", "seperator", "unknown", "cls"})
    for (const std::uint32_t id : {5u, 4294967295u}) {
      GgufBuilder file = byte_pairs();
      file.u32(fmt::format("tokenizer.ggml.{}_token_id", name), id);
      const auto tokenizer = load(file);
      ASSERT_TRUE(tokenizer.has_value()) << name << ": " << tokenizer.error().message;
      EXPECT_THAT(tokenizer->encode("ab", true).value(), ElementsAre(3, 2));
      EXPECT_EQ(tokenizer->config().special_token("pad_token"), "");
    }
}

TEST(LoadTokenizer, BytesWithoutMergesAreRefused) {
  GgufBuilder file;
  file.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  EXPECT_THAT(load(file).error().message, HasSubstr("tokenizer.ggml.merges is missing"));
}

TEST(LoadTokenizer, WithoutThePreTokenizersNameItIsTheUsualOne) {
  GgufBuilder file;
  file.text("tokenizer.ggml.model", "gpt2").texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  file.texts("tokenizer.ggml.merges", {"a b"});
  const auto tokenizer = load(file);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  EXPECT_THAT(tokenizer->encode("abb", true).value(), ElementsAre(2, 1));
}

TEST(LoadTokenizer, ErrorsNameTheFileAndTheKey) {
  GgufBuilder file;
  file.text("tokenizer.ggml.model", "no_vocab");
  EXPECT_THAT(load(file).error().message, HasSubstr("model.gguf: tokenizer.ggml.model is \"no_vocab\""));
  GgufBuilder numbers;
  numbers.u32("tokenizer.ggml.tokens", 5);
  EXPECT_THAT(load(numbers).error().message,
              HasSubstr("model.gguf: tokenizer.ggml.tokens must be a list of texts"));
}

}  // namespace
}  // namespace octavo
