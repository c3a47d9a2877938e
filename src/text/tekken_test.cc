// Compares Mistral's tekken.json with mistral_common: tests/data/text/tekken, from
// tools/goldens/make_tekken_golden.py.
#include "text/tekken.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <functional>

#include "base/testing/scratch_directory.h"

namespace octavo {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

constexpr const char* kFolder = "tests/data/text/tekken";

json::value read(const std::string& name) {
  return json::parse(read_text_file(std::string(kFolder) + "/" + name, 1 << 20).value());
}

TEST(Tekken, GivesTheIdsOfMistralCommon) {
  const Tokenizer tokenizer = Tokenizer::load(kFolder).value();
  EXPECT_EQ(tokenizer.vocab_size(), 426);
  EXPECT_EQ(tokenizer.id_of(tokenizer.config().special_token("bos_token")), 1);
  EXPECT_EQ(tokenizer.id_of(tokenizer.config().special_token("eos_token")), 2);
  EXPECT_EQ(tokenizer.id_of("<SPECIAL_7>"), 7);
  const json::value golden = read("golden.json");
  ASSERT_GE(golden.get_array().size(), 8U);
  for (const json::value& one : golden.get_array()) {
    const std::string text(one.at(0).get_string());
    const auto ids = json::value_to<std::vector<std::int32_t>>(one.at(1));
    EXPECT_EQ(tokenizer.encode(text, true).value(), ids) << text;
    EXPECT_EQ(tokenizer.decode(ids, true).value(), text);
  }
  // Chat templates write special tokens as text.
  EXPECT_THAT(tokenizer.encode("[INST]", false).value(), testing::ElementsAre(3));
}

TEST(Tekken, ErrorsNameTheField) {
  const auto error = [](const std::function<void(json::object&)>& change) {
    json::value file = read("tekken.json");
    change(file.get_object());
    const auto made = tokenizer_of_tekken(json::serialize(file), {});
    return made ? "none" : made.error().message;
  };
  const auto config = [](json::object& file) -> json::object& { return file["config"].get_object(); };
  EXPECT_EQ(error([](json::object&) {}), "none");
  EXPECT_THAT(error([](json::object& f) { f.erase("config"); }), HasSubstr("config must be an object"));
  EXPECT_THAT(error([&](json::object& f) { config(f)["pattern"] = "\\w+"; }), HasSubstr("config.pattern"));
  EXPECT_THAT(error([&](json::object& f) { config(f)["default_vocab_size"] = -1; }),
              HasSubstr("config.default_vocab_size must be"));
  EXPECT_THAT(error([&](json::object& f) { config(f)["default_vocab_size"] = 5000; }),
              HasSubstr("vocab has 420 tokens, but must have 4992"));
  EXPECT_THAT(error([&](json::object& f) { config(f)["default_num_special_tokens"] = 2; }),
              HasSubstr("special_tokens has more"));
  EXPECT_THAT(error([](json::object& f) { f["special_tokens"] = {1, 2}; }), HasSubstr("token_str"));
  EXPECT_THAT(error([](json::object& f) { f["vocab"].at(300).get_object()["token_bytes"] = "?"; }),
              HasSubstr("vocab[300].token_bytes"));
  EXPECT_THAT(error([](json::object& f) { f["vocab"].at(300).get_object()["token_bytes"] = "dGhl"; }),
              HasSubstr("twice"));  // "the"
  EXPECT_THAT(tokenizer_of_tekken("[]", {}).error().message, HasSubstr("not a JSON object"));
}

}  // namespace
}  // namespace octavo
