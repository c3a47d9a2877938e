// Converts tokenizers to GGUF vocabularies and back.
#include "text/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>

#include "base/base64.h"
#include "text/fixtures.h"

namespace octavo {
namespace {

using testing::HasSubstr;

// A vocabulary, and the memory that it refers to.
struct Taken {
  std::vector<std::string> tokens, merges;
  GgufVocabulary vocabulary;

  Taken(const std::string& name, std::string_view model, std::string_view pre) {
    const auto tree = fixtures::read_json("tokenizers/" + name + "/tokenizer.json");
    const auto& bpe = tree.at("model").as_object();
    const bool words = model == "bert", unigrams = model == "t5";
    std::map<std::int64_t, std::string> by_id;
    std::map<std::string, double> scores;
    if (unigrams) {
      for (const auto& piece : bpe.at("vocab").as_array()) {
        by_id[std::ssize(by_id)] = fixtures::text(piece.at(0));
        scores[fixtures::text(piece.at(0))] = piece.at(1).to_number<double>();
      }
      vocabulary.charsmap =
          decode_base64(fixtures::text(tree.at("normalizer").at("precompiled_charsmap"))).value();
      vocabulary.single_spaces = vocabulary.add_bos = vocabulary.add_eos = true;
      vocabulary.special.eos = 2;
    } else {
      for (const auto& [token, id] : bpe.at("vocab").as_object()) by_id[id.as_int64()] = token;
    }
    std::map<std::int64_t, double> types;
    for (const auto& added : tree.at("added_tokens").as_array()) {
      by_id[added.at("id").as_int64()] = fixtures::text(added.at("content"));
      types[added.at("id").as_int64()] = added.at("special").as_bool() ? 3 : 4;
    }
    for (const auto& [id, token] : by_id) {
      tokens.push_back(!words || types.contains(id) ? token
                       : token.starts_with("##")    ? token.substr(2)
                                                    : "\u2581" + token);
      vocabulary.types.push_back(types.contains(id)                              ? types[id]
                                 : token.starts_with("<0x") && token.size() == 6 ? 6
                                                                                 : 1);
    }
    for (const auto& merge : words || unigrams ? boost::json::array() : bpe.at("merges").as_array()) {
      const std::string left = fixtures::text(merge.at(0)), right = fixtures::text(merge.at(1));
      merges.push_back(left + " " + right);
      scores.emplace(left + right, -static_cast<double>(scores.size()));
    }
    vocabulary.model = model;
    vocabulary.pre = pre;
    for (const std::string& token : tokens) {
      vocabulary.tokens.push_back(token);
      vocabulary.scores.push_back(scores.contains(token) ? scores[token] : -1e9);
    }
    if (model != "llama" && !words && !unigrams) vocabulary.merges.assign(merges.begin(), merges.end());
  }
};

struct Case {
  std::string name, model, pre;
  std::optional<bool> space_prefix;
  std::optional<std::int64_t> bos, unknown = {};
};

class GgufTokenizer : public testing::TestWithParam<Case> {};

TEST_P(GgufTokenizer, IsTheOneItWasMadeFrom) {
  Taken taken(GetParam().name, GetParam().model, GetParam().pre);
  taken.vocabulary.add_space_prefix = GetParam().space_prefix;
  taken.vocabulary.special.bos = GetParam().bos;
  taken.vocabulary.special.unknown = GetParam().unknown;
  const auto tokenizer = tokenizer_of(taken.vocabulary);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const Tokenizer original = fixtures::tokenizer(GetParam().name);
  EXPECT_EQ(tokenizer->vocab_size(), original.vocab_size());
  for (std::int32_t id = 0; id < original.vocab_size(); ++id) {
    EXPECT_EQ(tokenizer->token(id), original.token(id));
    EXPECT_EQ(tokenizer->token_bytes(id), original.token_bytes(id)) << id;
    EXPECT_EQ(tokenizer->is_special(id), original.is_special(id)) << id;
  }
  const auto expected = fixtures::read_json("tokenizers/" + GetParam().name + "/expected.json");
  for (const auto& one : expected.at("encodings").as_array()) {
    const std::string text = fixtures::text(one.at("text"));
    EXPECT_EQ(tokenizer->encode(text, true).value(), fixtures::ids(one.at("ids"))) << text;
    EXPECT_EQ(tokenizer->encode(text, false).value(), fixtures::ids(one.at("plain_ids"))) << text;
    const auto ids = fixtures::ids(one.at("ids"));
    EXPECT_EQ(tokenizer->decode(ids, false).value(), fixtures::text(one.at("decoded")));
    EXPECT_EQ(tokenizer->decode(ids, true).value(), fixtures::text(one.at("decoded_plain")));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, GgufTokenizer,
    testing::Values(Case{"gpt2", "gpt2", "gpt-2", {}, {}}, Case{"llama3", "gpt2", "llama-bpe", {}, 700},
                    Case{"qwen", "gpt2", "qwen2", {}, {}}, Case{"llama2", "llama", "default", {}, {}},
                    Case{"gemma", "llama", "default", false, {}}, Case{"gemma", "gemma4", "", {}, 1, 0},
                    Case{"bert", "bert", "", {}, {}, 1}, Case{"xlmr", "t5", "default", true, 0, 3}),
    [](const auto& one) { return one.param.name + "_" + one.param.model; });

// Converters give the role of padding or of unknown text to an ordinary token if the model has no special
// one.
TEST(GgufTokenizer, AnOrdinaryTokenWithARoleIsNotSpecial) {
  for (const auto& [name, model, pre, mark] :
       {std::tuple("qwen", "gpt2", "qwen2", "!"), std::tuple("bert", "bert", "", "\u2581a")}) {
    Taken taken(name, model, pre);
    const auto found = std::ranges::find(taken.tokens, mark);
    ASSERT_NE(found, taken.tokens.end()) << name;
    const std::int64_t id = found - taken.tokens.begin();
    taken.vocabulary.special.padding = id;
    if (std::string_view(name) == "qwen") taken.vocabulary.special.unknown = id;
    const auto tokenizer = tokenizer_of(taken.vocabulary);
    ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
    EXPECT_FALSE(tokenizer->is_special(static_cast<std::int32_t>(id))) << name;
    const Tokenizer original = fixtures::tokenizer(name);
    for (const char* text : {"Hello!", "!!! !", "a!b", "a banana"}) {
      const auto ids = tokenizer->encode(text, true).value();
      EXPECT_EQ(ids, original.encode(text, true).value()) << name << ": " << text;
      EXPECT_EQ(tokenizer->decode(ids, true).value(), original.decode(ids, true).value()) << name;
    }
  }
}

TEST(GgufTokenizer, UnigramsFramePairs) {
  Taken taken("xlmr", "t5", "default");
  taken.vocabulary.special.bos = 0;
  taken.vocabulary.special.unknown = 3;
  const Tokenizer original = fixtures::tokenizer("xlmr");
  const auto pair = [](const Tokenizer& tokenizer) {
    return tokenizer.encode_texts("How are you?", "Quite well.").value().ids;
  };
  EXPECT_EQ(pair(tokenizer_of(taken.vocabulary).value()), pair(original));
  // T5 adds only an end token.
  taken.vocabulary.add_bos = {};
  taken.vocabulary.add_eos = {};
  std::vector<std::int32_t> ids = original.encode("Quite well.", false).value();
  ids.push_back(2);
  EXPECT_EQ(tokenizer_of(taken.vocabulary)->encode("Quite well.", true).value(), ids);
  taken.vocabulary.special.unknown = {};  // no token has the type `unknown` either
  EXPECT_THAT(tokenizer_of(taken.vocabulary).error().message, HasSubstr("unknown_token_id is missing"));
}

TEST(GgufTokenizer, EverySplitIsAnExpression) {
  const Taken taken("gpt2", "gpt2", "gpt-2");
  for (const char* pre : {"default", "falcon", "tekken", "gpt-4o", "deepseek-coder", "deepseek-v3",
                          "starcoder", "chatglm-bpe", "stablelm2", ""}) {
    GgufVocabulary vocabulary = taken.vocabulary;
    vocabulary.pre = pre;
    vocabulary.special.bos = 0;
    const auto tokenizer = tokenizer_of(vocabulary);
    ASSERT_TRUE(tokenizer.has_value()) << pre << tokenizer.error().message;
    const std::string text = "Hello  World's 12345 ABCdef, \u4f60\u597d!\n\n x";
    const auto ids = tokenizer->encode(text, false);
    ASSERT_TRUE(ids.has_value());
    EXPECT_EQ(tokenizer->decode(*ids, false).value(), text) << pre;
  }
}

TEST(GgufTokenizer, WrongVocabularies) {
  const Taken bytes("gpt2", "gpt2", "gpt-2"), pieces("llama2", "llama", "");
  const auto error = [](const Taken& taken, auto&& change) {
    GgufVocabulary vocabulary = taken.vocabulary;
    change(vocabulary);
    const auto tokenizer = tokenizer_of(vocabulary);
    return tokenizer ? "accepted" : tokenizer.error().message;
  };
  using V = GgufVocabulary;
  EXPECT_THAT(error(bytes, [](V& v) { v.model = "rwkv"; }),
              HasSubstr("must be bert, gpt2, llama, gemma4, plamo2, plamo3 or t5"));
  EXPECT_THAT(error(bytes, [](V& v) { v.model = "bert"; }),
              HasSubstr("must be below the number of tokens, 701"));
  EXPECT_THAT(
      error(bytes, [](V& v) { v.pre = "martian"; }),
      HasSubstr("tokenizer.ggml.pre is \"martian\", which is not supported: must be one of chatglm-bpe, "));
  EXPECT_THAT(error(bytes, [](V& v) { v.tokens.clear(); }), HasSubstr("tokens is missing or empty"));
  EXPECT_THAT(error(bytes, [](V& v) { v.types.pop_back(); }),
              HasSubstr("token_type has 700 items, but the vocabulary has 701"));
  EXPECT_THAT(error(pieces, [](V& v) { v.scores.clear(); }), HasSubstr("scores has 0 items"));
  EXPECT_THAT(error(pieces, [](V& v) { v.scores[7] = NAN; }), HasSubstr("scores: each score must be finite"));
  const std::string long_token(5000, 'x');
  EXPECT_THAT(error(bytes, [&](V& v) { v.tokens[5] = long_token; }),
              HasSubstr("token 5 has 5000 bytes, but the limit is 4096"));
  EXPECT_THAT(error(bytes, [](V& v) { v.tokens[5] = v.tokens[4]; }), HasSubstr("token 5, "));
  EXPECT_THAT(error(bytes, [](V& v) { v.tokens[5] = "\xff"; }), HasSubstr("token 5 is not UTF-8 at byte 0"));
  EXPECT_THAT(error(bytes, [](V& v) { v.merges[3] = "one"; }), HasSubstr("\"one\" is not a pair of tokens"));
  EXPECT_NE(error(bytes, [](V& v) { v.merges[3] = "absent tokens"; }), "accepted");
  EXPECT_THAT(error(bytes, [](V& v) { v.special.eos = 701; }),
              HasSubstr("special token is 701, but the vocabulary has 701 tokens"));
}

}  // namespace
}  // namespace octavo
