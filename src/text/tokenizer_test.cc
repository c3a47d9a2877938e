#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/testing/scratch_directory.h"
#include "text/fixtures.h"

namespace octavo {
namespace {

class TokenizerTest : public testing::TestWithParam<std::string> {
 protected:
  const Tokenizer tokenizer = fixtures::tokenizer(GetParam());
  const boost::json::value expected = fixtures::read_json("tokenizers/" + GetParam() + "/expected.json");
};

TEST_P(TokenizerTest, EncodesAsPythonDoes) {
  for (const auto& one : expected.at("encodings").as_array()) {
    const std::string text = fixtures::text(one.at("text"));
    EXPECT_EQ(tokenizer.encode(text, true).value(), fixtures::ids(one.at("ids"))) << text;
    EXPECT_EQ(tokenizer.encode(text, false).value(), fixtures::ids(one.at("plain_ids"))) << text;
  }
}

TEST_P(TokenizerTest, DecodesAsPythonDoes) {
  for (const auto& one : expected.at("encodings").as_array()) {
    const std::vector<std::int32_t> ids = fixtures::ids(one.at("ids"));
    EXPECT_EQ(tokenizer.decode(ids, false).value(), fixtures::text(one.at("decoded")));
    EXPECT_EQ(tokenizer.decode(ids, true).value(), fixtures::text(one.at("decoded_plain")));
  }
}

TEST_P(TokenizerTest, DecodesAnyIdsAsPythonDoes) {
  for (const auto& one : expected.at("decodings").as_array()) {
    const std::vector<std::int32_t> ids = fixtures::ids(one.at("ids"));
    EXPECT_EQ(tokenizer.decode(ids, one.at("skip").as_bool()).value(), fixtures::text(one.at("text")));
  }
}

TEST_P(TokenizerTest, KnowsItsVocabulary) {
  EXPECT_EQ(tokenizer.vocab_size(), expected.at("vocab_size").as_int64());
  for (std::int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    ASSERT_TRUE(tokenizer.token(id).has_value()) << id;
    EXPECT_EQ(tokenizer.id_of(*tokenizer.token(id)), id);
    EXPECT_TRUE(tokenizer.token_bytes(id).has_value()) << id;
  }
  for (const std::int32_t id : {-1, tokenizer.vocab_size(), 2147483647}) {
    EXPECT_FALSE(tokenizer.token(id).has_value()) << id;
    EXPECT_FALSE(tokenizer.token_bytes(id).has_value()) << id;
    EXPECT_FALSE(tokenizer.is_special(id)) << id;
  }
}

TEST_P(TokenizerTest, ServesManyThreads) {
  const std::string text = "The quick brown fox, 你好 🎉 1234 fox fox.";
  const std::vector<std::int32_t> ids = tokenizer.encode(text, true).value();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 50; ++n) EXPECT_EQ(tokenizer.encode(text, true).value(), ids);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(All, TokenizerTest, testing::ValuesIn(fixtures::kTokenizers),
                         [](const auto& test) { return test.param; });

TEST(Tokenizer, LosslessOnesRoundTrip) {
  for (const std::string name : {"gpt2", "llama3", "llama2", "gemma"}) {
    const bool byte_level = name == "gpt2" || name == "llama3";
    const Tokenizer tokenizer = fixtures::tokenizer(name);
    const boost::json::value expected = fixtures::read_json("tokenizers/" + name + "/expected.json");
    for (const auto& one : expected.at("encodings").as_array()) {
      const std::string text = fixtures::text(one.at("text"));
      // SentencePiece writes a space as "▁", and adds one to the text after a special token.
      if (!byte_level && (text.find("▁") != std::string::npos || text.find("<s>") != std::string::npos))
        continue;
      EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false).value(), false).value(), text) << name;
    }
  }
}

TEST(Tokenizer, TokenBytesJoinToTheText) {
  const std::string text = "Größe 你好 👩‍👩‍👧‍👦 naïve  two spaces\n\tᚠ";
  for (const std::string name : {"gpt2", "llama3", "qwen", "gemma"}) {
    const Tokenizer tokenizer = fixtures::tokenizer(name);
    std::string joined;
    const std::vector<std::int32_t> ids = tokenizer.encode(text, false).value();
    for (const std::int32_t id : ids) joined += tokenizer.token_bytes(id).value();
    EXPECT_EQ(joined, text) << name;
  }
}

TEST(Tokenizer, TokenBytesUndoEachAlphabet) {
  const Tokenizer gpt2 = fixtures::tokenizer("gpt2");
  EXPECT_EQ(gpt2.token_bytes(gpt2.id_of("Ġthe").value()), " the");
  EXPECT_EQ(gpt2.token_bytes(gpt2.id_of("Ċ").value()), "\n");
  EXPECT_EQ(gpt2.token_bytes(gpt2.id_of("Ń").value()), "\xAD");
  EXPECT_EQ(gpt2.token_bytes(gpt2.id_of("Ġ").value()), " ");
  EXPECT_EQ(gpt2.token_bytes(gpt2.id_of("ÿ").value()), "\xFF");
  const Tokenizer llama2 = fixtures::tokenizer("llama2");
  EXPECT_EQ(llama2.token_bytes(llama2.id_of("<0x0A>").value()), "\n");
  EXPECT_EQ(llama2.token_bytes(llama2.id_of("<0xFF>").value()), "\xFF");
  EXPECT_EQ(llama2.token_bytes(llama2.id_of("▁the").value()), " the");
  const Tokenizer bert = fixtures::tokenizer("bert");
  EXPECT_EQ(bert.token_bytes(bert.id_of("the").value()), " the");
  EXPECT_EQ(bert.token_bytes(bert.id_of("##e").value()), "e");
}

TEST(Tokenizer, ByteLevelAlphabetCoversEveryByte) {
  const Tokenizer gpt2 = fixtures::tokenizer("gpt2");
  std::vector<int> seen(256, 0);
  for (std::int32_t id = 0; id < gpt2.vocab_size(); ++id) {
    const std::string bytes = gpt2.token_bytes(id).value();
    if (bytes.size() == 1) ++seen[static_cast<std::uint8_t>(bytes[0])];
  }
  EXPECT_THAT(seen, testing::Each(1));
}

// The ranges are those of Python's `tokenizers`.
TEST(Tokenizer, OffsetsAreCharactersOfTheText) {
  const std::string text = "Größe 你 😀 e\u0301 x";
  using Ranges = std::vector<std::pair<int, int>>;
  const auto ranges = [&](const std::string& name) {
    Ranges all;
    const auto found = fixtures::tokenizer(name).offsets(text, true);
    for (const auto [begin, end] : *found) all.emplace_back(begin, end);
    return all;
  };
  EXPECT_EQ(ranges("bert"), (Ranges{{0, 0}, {0, 3}, {3, 5}, {6, 7}, {8, 9}, {10, 11}, {13, 14}, {0, 0}}));
  EXPECT_EQ(ranges("gpt2"), (Ranges{{0, 2},
                                    {2, 4},
                                    {3, 5},
                                    {5, 6},
                                    {6, 7},
                                    {7, 9},
                                    {8, 9},
                                    {8, 9},
                                    {9, 11},
                                    {11, 12},
                                    {11, 12},
                                    {12, 14}}));
  EXPECT_EQ(ranges("xlmr"), (Ranges{{0, 0},
                                    {0, 1},
                                    {0, 1},
                                    {1, 2},
                                    {2, 3},
                                    {3, 5},
                                    {6, 7},
                                    {6, 7},
                                    {8, 9},
                                    {8, 9},
                                    {10, 11},
                                    {10, 11},
                                    {13, 14},
                                    {13, 14},
                                    {0, 0}}));
  EXPECT_EQ(fixtures::tokenizer("plamo2").offsets(text, true).error().field, "prompt");
}

TEST(Tokenizer, RefusesBadText) {
  const Tokenizer gpt2 = fixtures::tokenizer("gpt2");
  const auto broken = gpt2.encode("ok\xE2\x82", true);
  ASSERT_FALSE(broken.has_value());
  EXPECT_EQ(broken.error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(broken.error().field, "prompt");
  EXPECT_EQ(broken.error().message, "invalid UTF-8 at byte 2");
  const auto long_text = gpt2.encode("12345", true, 4);
  ASSERT_FALSE(long_text.has_value());
  EXPECT_EQ(long_text.error().message, "the text has 5 bytes, but the limit is 4");
  const auto negative = gpt2.decode(std::vector<std::int32_t>{1, -7}, false);
  ASSERT_FALSE(negative.has_value());
  EXPECT_EQ(negative.error().message, "token id -7 at index 1 is negative");
}

TEST(Tokenizer, RefusesBadFiles) {
  EXPECT_EQ(Tokenizer::load("tests/data/no such model").error().code, ErrorCode::not_found);
  const ScratchDirectory mistral;
  mistral.write("tekken.json", "{}");
  EXPECT_THAT(Tokenizer::load(mistral.path()).error().message,
              testing::HasSubstr("tekken.json: config must be"));
  const ScratchDirectory rwkv;
  rwkv.write("rwkv_vocab_v20230424.txt", "1 '\\x00' 1\n");
  EXPECT_THAT(Tokenizer::load(rwkv.path()).error().message,
              testing::HasSubstr("contains rwkv_vocab_v20230424.txt, which is"));
  for (const char* json : {"", "{", "[]", "{}", R"({"model": {"type": "BPE"}})", "\xFF\xFE"}) {
    const auto tokenizer = Tokenizer::parse(json);
    ASSERT_FALSE(tokenizer.has_value()) << json;
    EXPECT_EQ(tokenizer.error().code, ErrorCode::corrupt) << json;
  }
}

constexpr std::string_view kTiny =
    R"({"version": "1.0", "truncation": null, "padding": null, "added_tokens": [],
  "normalizer": null, "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": null, "decoder": null,
  "model": {"type": "WordLevel", "vocab": {"<s>": 0, "a": 1, "b": 2, "<unk>": 3, "</s>": 4}, "unk_token": "<unk>"}})";

Result<Tokenizer> tiny(std::string config_json) {
  TokenizerConfig config;
  config.json = std::move(config_json);
  return Tokenizer::parse(kTiny, std::move(config));
}

using testing::ElementsAre;

// with_end: the post-processor adds </s> after a text; otherwise there is no post-processor.
Result<Tokenizer> framed(std::string_view config_json, bool with_end = true) {
  constexpr std::string_view kEnd = R"({"type": "TemplateProcessing",
      "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
      "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
      "special_tokens": {"</s>": {"id": "</s>", "ids": [4], "tokens": ["</s>"]}}})";
  boost::json::value json = boost::json::parse(kTiny);
  if (with_end) json.at("post_processor") = boost::json::parse(kEnd);
  TokenizerConfig config;
  config.json = config_json;
  return Tokenizer::parse(boost::json::serialize(json), std::move(config));
}

// The values are from transformers 5.24 and 4.57, which agree here.
TEST(Tokenizer, FlagsOfMostClassesLeaveThePostProcessorAlone) {
  for (const char* name : {"", R"("tokenizer_class": "Qwen2Tokenizer",)", R"("tokenizer_class": "GPT2TokenizerFast",)",
                           R"("tokenizer_class": "PreTrainedTokenizerFast",)", R"("tokenizer_class": null,)"})
    for (const char* bos : {"", R"("add_bos_token": true,)", R"("add_bos_token": false,)"})
      for (const char* eos : {"", R"("add_eos_token": true,)", R"("add_eos_token": false,)"}) {
        const std::string config =
            fmt::format(R"({{{}{}{} "bos_token": "<s>", "eos_token": "</s>"}})", name, bos, eos);
        EXPECT_THAT(framed(config)->encode("a b", true).value(), ElementsAre(1, 2, 4)) << config;
        EXPECT_THAT(framed(config, false)->encode("a b", true).value(), ElementsAre(1, 2)) << config;
      }
}

// The values are from transformers 4.57 if a flag is given, otherwise from 5.24.
TEST(Tokenizer, FlagsOfLlamasKinReplaceThePostProcessor) {
  for (const char* name : {"LlamaTokenizer", "LlamaTokenizerFast", "CodeLlamaTokenizerFast", "GemmaTokenizer",
                           "CohereTokenizerFast"}) {
    const auto ids = [&](std::string_view flags) {
      return framed(fmt::format(R"({{"tokenizer_class": "{}",{} "bos_token": {{"content": "<s>"}}, "eos_token": "</s>"}})",
                                name, flags))
          ->encode("a b", true)
          .value();
    };
    EXPECT_THAT(ids(""), ElementsAre(1, 2, 4)) << name;
    EXPECT_THAT(ids(R"("add_bos_token": true,)"), ElementsAre(0, 1, 2)) << name;
    EXPECT_THAT(ids(R"("add_bos_token": false,)"), ElementsAre(1, 2)) << name;
    EXPECT_THAT(ids(R"("add_eos_token": true,)"), ElementsAre(0, 1, 2, 4)) << name;
    EXPECT_THAT(ids(R"("add_eos_token": false,)"), ElementsAre(0, 1, 2)) << name;
    EXPECT_THAT(ids(R"("add_bos_token": false, "add_eos_token": true,)"), ElementsAre(1, 2, 4)) << name;
    EXPECT_THAT(ids(R"("add_bos_token": true, "add_eos_token": true,)"), ElementsAre(0, 1, 2, 4)) << name;
  }
}

TEST(Tokenizer, GptNeoXsClassNeverKeepsThePostProcessor) {
  const auto ids = [](std::string_view flags) {
    return framed(fmt::format(
               R"({{"tokenizer_class": "GPTNeoXTokenizerFast",{} "bos_token": "<s>", "eos_token": "</s>"}})", flags))
        ->encode("a b", true)
        .value();
  };
  EXPECT_THAT(ids(""), ElementsAre(1, 2));
  EXPECT_THAT(ids(R"("add_bos_token": true,)"), ElementsAre(0, 1, 2));
  EXPECT_THAT(ids(R"("add_eos_token": true,)"), ElementsAre(1, 2, 4));
}

TEST(Tokenizer, ATokenThatAFlagAddsIsTheConfigsOrTheClasssOwn) {
  EXPECT_THAT(framed(R"({"tokenizer_class": "LlamaTokenizer", "add_eos_token": true})")->encode("a b", true).value(),
              ElementsAre(0, 1, 2, 4));
  EXPECT_THAT(
      framed(R"({"tokenizer_class": "GemmaTokenizer", "add_eos_token": true})")->encode("a b", true).value(),
      ElementsAre(1, 2));  // the vocabulary has no <bos> and <eos>
  EXPECT_THAT(framed(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true, "bos_token": null})")
                  ->encode("a b", true)
                  .value(),
              ElementsAre(1, 2));
  EXPECT_THAT(framed(R"({"tokenizer_class": "LlamaTokenizer", "add_bos_token": true, "bos_token": "<new>"})")
                  ->encode("a b", true)
                  .value(),
              ElementsAre(5, 1, 2));
  const auto both = framed(R"({"tokenizer_class": "LlamaTokenizer", "add_eos_token": true})");
  EXPECT_THAT(both->encode("a b", false).value(), ElementsAre(1, 2));
  EXPECT_THAT(both->encode_texts("a", "b").value().ids, ElementsAre(0, 1, 4, 0, 2, 4));
}

TEST(Tokenizer, AddsTokensThatOnlyTheConfigLists) {
  const auto added = tiny(R"({"added_tokens_decoder": {
      "6": {"content": "<tool>", "lstrip": false, "normalized": false, "rstrip": false, "single_word": false, "special": false},
      "5": {"content": "<end>", "lstrip": false, "normalized": false, "rstrip": false, "single_word": false, "special": true}}})");
  ASSERT_TRUE(added.has_value());
  EXPECT_THAT(added->encode("a<end>b<tool>", false).value(), ElementsAre(1, 5, 2, 6));
  EXPECT_TRUE(added->is_special(5));
  EXPECT_FALSE(added->is_special(6));
  EXPECT_EQ(added->vocab_size(), 7);
  const auto gap = tiny(R"({"added_tokens_decoder": {"9": {"content": "<gap>", "special": true}}})");
  EXPECT_THAT(gap->encode("a<gap>", false).value(), ElementsAre(1, 5));
}

TEST(Tokenizer, TheConfigDecidesAboutAddedTokens) {
  constexpr std::string_view kMask =
      R"({"id": 2, "content": "b", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": false})";
  boost::json::value json = boost::json::parse(kTiny);
  json.at("added_tokens").as_array().push_back(boost::json::parse(kMask));
  const auto ids = [&](std::string_view property, std::string_view text) {
    TokenizerConfig config;
    config.json = fmt::format(
        R"({{"added_tokens_decoder": {{"2": {{"content": "b", "normalized": false, "{}": true}}}}}})",
        property);
    const auto tokenizer = Tokenizer::parse(boost::json::serialize(json), std::move(config));
    return std::pair(tokenizer->encode(text, false).value(), tokenizer->is_special(2));
  };
  EXPECT_THAT(ids("single_word", "ba b").first, ElementsAre(3, 2));
  EXPECT_THAT(ids("rstrip", "ba b").first, ElementsAre(2, 1, 2));
  EXPECT_FALSE(ids("rstrip", "").second);
  EXPECT_TRUE(ids("special", "").second);
}

// kTiny with another normalizer or pre-tokenizer.
std::vector<std::int32_t> ids_with(const char* part, std::string_view value, std::string_view config_json,
                                   std::string_view text) {
  boost::json::value json = boost::json::parse(kTiny);
  json.at(part) = boost::json::parse(value);
  TokenizerConfig config;
  config.json = config_json;
  return Tokenizer::parse(boost::json::serialize(json), std::move(config))->encode(text, false).value();
}

TEST(Tokenizer, TheConfigOfBertsClassesDecidesAboutUpperCase) {
  constexpr std::string_view kKeeps =
      R"({"type": "BertNormalizer", "clean_text": true, "handle_chinese_chars": true, "strip_accents": null, "lowercase": false})";
  const auto ids = [&](std::string_view config) {
    return ids_with("normalizer", kKeeps, config, "A \u00e1");
  };
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})"), ElementsAre(1, 1));
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizerFast"})"), ElementsAre(1, 1));
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizer", "do_lower_case": false})"), ElementsAre(3, 3));
  EXPECT_THAT(ids(R"({"tokenizer_class": "BertTokenizer", "strip_accents": false})"), ElementsAre(1, 3));
  EXPECT_THAT(ids(R"({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": true})"),
              ElementsAre(3, 3));
}

TEST(Tokenizer, TheConfigOfGpt2sClassesDecidesAboutALeadingSpace) {
  constexpr std::string_view kSpace =
      R"({"type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true})";
  const auto ids = [&](std::string_view config) { return ids_with("pre_tokenizer", kSpace, config, "a"); };
  EXPECT_THAT(ids(R"({"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": true})"), ElementsAre(3));
  EXPECT_THAT(ids(R"({"tokenizer_class": "GPT2TokenizerFast", "add_prefix_space": false})"), ElementsAre(1));
  EXPECT_THAT(ids(R"({"tokenizer_class": "GPT2Tokenizer"})"), ElementsAre(1));
  EXPECT_THAT(ids(R"({"tokenizer_class": "PreTrainedTokenizerFast"})"), ElementsAre(3));
}

TEST(Tokenizer, SpecialTokensThatAreOnlyNamedAreTokens) {
  for (const char* config : {R"({"eos_token": "<end>"})", R"({"pad_token": {"content": "<end>"}})",
                             R"({"image_token": "<end>"})", R"({"additional_special_tokens": ["<end>"]})",
                             R"({"extra_special_tokens": {"image_token": "<end>"}})"}) {
    const auto tokenizer = tiny(config);
    EXPECT_THAT(tokenizer->encode("a<end>b", false).value(), ElementsAre(1, 5, 2)) << config;
    EXPECT_TRUE(tokenizer->is_special(5)) << config;
  }
  const auto word = tiny(R"({"eos_token": "b"})");  // a word of the vocabulary keeps its id
  EXPECT_THAT(word->encode("ab", false).value(), ElementsAre(1, 2));
  EXPECT_TRUE(word->is_special(2));
}

TEST(Tokenizer, SpecialTokensMayBeSplit) {
  EXPECT_THAT(tiny(R"({"eos_token": "<end>"})")->encode("<end>", false).value(), ElementsAre(5));
  EXPECT_THAT(tiny(R"({"eos_token": "<end>", "split_special_tokens": true})")->encode("<end>", false).value(),
              ElementsAre(3));
}

TEST(Tokenizer, AClassHasSpecialTokensThatTheConfigDoesNotName) {
  const auto llama = tiny(R"({"tokenizer_class": "LlamaTokenizerFast", "eos_token": null})");
  EXPECT_EQ(llama->config().special_token("bos_token"), "<s>");
  EXPECT_EQ(llama->config().special_token("eos_token"), "");
  EXPECT_EQ(tiny(R"({"tokenizer_class": "T5Tokenizer"})")->config().special_token("eos_token"), "</s>");
  const auto qwen = tiny(R"({"tokenizer_class": "Qwen2Tokenizer"})");  // the vocabulary lacks <|endoftext|>
  EXPECT_EQ(qwen->config().special_token("eos_token"), "");
  EXPECT_EQ(qwen->vocab_size(), 5);
}

TEST(Tokenizer, FilesOfOlderFoldersCountWithoutAddedTokensDecoder) {
  ScratchDirectory folder;
  folder.write("tokenizer.json", kTiny);
  folder.write("tokenizer_config.json", R"({"bos_token": "<unk>", "eos_token": "a"})");
  folder.write("special_tokens_map.json", R"({"bos_token": "<s>", "additional_special_tokens": ["<more>"]})");
  folder.write("added_tokens.json", R"({"<new>": 5})");
  const auto older = Tokenizer::load(folder.path());
  ASSERT_TRUE(older.has_value()) << older.error().message;
  EXPECT_EQ(older->config().special_token("bos_token"), "<s>");
  EXPECT_EQ(older->config().special_token("eos_token"), "a");
  EXPECT_THAT(older->encode("b<new><more>", false).value(), ElementsAre(2, 5, 6));
  EXPECT_FALSE(older->is_special(5));
  folder.write("tokenizer_config.json", R"({"bos_token": "<unk>", "added_tokens_decoder": {}})");
  const auto newer = Tokenizer::load(folder.path());
  EXPECT_EQ(newer->config().special_token("bos_token"), "<unk>");
  EXPECT_EQ(newer->vocab_size(), 5);
}

TEST(Tokenizer, TheModelTypeChoosesAClass) {
  ScratchDirectory folder;
  folder.write("tokenizer.json", kTiny);
  folder.write("tokenizer_config.json",
               R"({"tokenizer_class": null, "add_eos_token": false, "bos_token": "<s>"})");
  folder.write("config.json", R"({"model_type": "gemma2"})");
  EXPECT_THAT(Tokenizer::load(folder.path())->encode("a", true).value(), ElementsAre(0, 1));
  folder.write("config.json", R"({"model_type": "gemma2", "tokenizer_class": "PreTrainedTokenizerFast"})");
  EXPECT_THAT(Tokenizer::load(folder.path())->encode("a", true).value(), ElementsAre(1));
}

TEST(TokenizerTexts, AreFramedAndCutAsTheModelReadsThem) {
  boost::json::value json = fixtures::read_json("tokenizers/bert/tokenizer.json");
  json.at("post_processor").at("pair") = boost::json::parse(R"([
      {"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
      {"SpecialToken": {"id": "[SEP]", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}},
      {"SpecialToken": {"id": "[SEP]", "type_id": 1}}])");  // as in published BERT models
  const Tokenizer bert = Tokenizer::parse(boost::json::serialize(json)).value();
  const auto plain = [&](std::string_view text) { return bert.encode(text, false).value(); };
  const auto framed = [&](std::vector<std::vector<std::int32_t>> texts) {
    std::vector<std::int32_t> ids{bert.id_of("[CLS]").value()};
    for (const auto& text : texts) {
      ids.insert(ids.end(), text.begin(), text.end());
      ids.push_back(bert.id_of("[SEP]").value());
    }
    return ids;
  };
  const auto first = [](std::vector<std::int32_t> ids, std::size_t count) {
    ids.resize(count);
    return ids;
  };
  const std::string question = "the house", answer = "the house was the house and the house";
  const auto a = plain(question), b = plain(answer);
  ASSERT_GT(b.size(), a.size() + 2);

  const auto one = bert.encode_texts(answer, std::nullopt).value();
  EXPECT_EQ(one.ids, bert.encode(answer, true).value());
  EXPECT_EQ(one.second, std::nullopt);
  EXPECT_EQ(bert.encode_texts(answer, std::nullopt, 5)->ids, framed({first(b, 3)}));
  EXPECT_EQ(bert.encode_texts(answer, std::nullopt, 1)->ids, framed({{}}));

  const auto pair = bert.encode_texts(question, answer).value();
  EXPECT_EQ(pair.ids, framed({a, b}));
  EXPECT_EQ(pair.second, static_cast<int>(a.size()) + 2);
  const auto cut = bert.encode_texts(question, answer, a.size() + 3 + 3).value();
  EXPECT_EQ(cut.ids, framed({a, first(b, 3)}));
  EXPECT_EQ(cut.second, pair.second);
  EXPECT_EQ(bert.encode_texts("\xff", std::nullopt).error().field, "prompt");
  EXPECT_EQ(bert.encode_texts("a", "\xff").error().field, "prompt");
}

}  // namespace
}  // namespace octavo
