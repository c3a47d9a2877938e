#include "traffic/dataset.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

#include "base/testing/scratch_directory.h"

namespace octavo::traffic {
namespace {

using testing::HasSubstr;

class Dataset : public testing::Test {
 protected:
  Result<std::vector<Prompt>> load(DatasetOptions options) { return load_dataset(options, tokenizer_); }
  std::string file(std::string_view text) {
    const auto path = folder_.path() / "data";
    std::ofstream(path) << text;
    return path.string();
  }

  Tokenizer tokenizer_ = Tokenizer::load("models/demo").value();
  ScratchDirectory folder_;
};

TEST_F(Dataset, RandomLengthsLieWithinTheRange) {
  const auto prompts = load({.num_prompts = 200,
                             .random_input_len = 100,
                             .random_output_len = 10,
                             .random_range_ratio = 0.5,
                             .random_prefix_len = 7})
                           .value();
  ASSERT_EQ(prompts.size(), 200U);
  std::set<int> lengths;
  for (const Prompt& p : prompts) {
    EXPECT_EQ(p.input_tokens, static_cast<int>(p.ids.size()));
    EXPECT_GE(p.input_tokens, 57);
    EXPECT_LE(p.input_tokens, 157);
    EXPECT_GE(p.output_tokens, 5);
    EXPECT_LE(p.output_tokens, 15);
    EXPECT_TRUE(std::equal(p.ids.begin(), p.ids.begin() + 7, prompts[0].ids.begin()));
    for (const std::int32_t id : p.ids) EXPECT_TRUE(id >= 0 && id < tokenizer_.vocab_size());
    lengths.insert(p.input_tokens);
  }
  EXPECT_GT(lengths.size(), 20U);
}

TEST_F(Dataset, PrefixesRepeat) {
  const auto prompts =
      load({.name = "prefix_repetition", .num_prompts = 30, .prefixes = 3, .prefix_len = 8, .suffix_len = 4})
          .value();
  std::map<std::vector<std::int32_t>, int> prefixes;
  for (const Prompt& p : prompts) ++prefixes[{p.ids.begin(), p.ids.begin() + 8}];
  ASSERT_EQ(prefixes.size(), 3U);
  for (const auto& [ids, count] : prefixes) EXPECT_EQ(count, 10);
}

TEST_F(Dataset, ShareGptTakesFirstTurnsOfAFitLength) {
  const std::string path = file(R"([
    {"conversations": [{"from": "human", "value": "What is a paged cache good for, in short?"},
                       {"from": "gpt", "value": "Memory is given out in blocks, so that none is lost."}]},
    {"conversations": [{"from": "human", "value": "Hi"}, {"from": "gpt", "value": "Hi"}]},
    {"conversations": []}])");
  const auto prompts = load({.name = "sharegpt", .path = path, .num_prompts = 2}).value();
  ASSERT_EQ(prompts.size(), 2U) << "the one fit conversation is asked twice";
  EXPECT_EQ(prompts[0].text, "What is a paged cache good for, in short?");
  EXPECT_GT(prompts[0].output_tokens, 4);
  EXPECT_EQ(load({.name = "sharegpt", .path = path, .num_prompts = 1, .sharegpt_output_len = 9})
                ->front()
                .output_tokens,
            9);
}

TEST_F(Dataset, CustomLinesMayGiveTheirOutputTokens) {
  const auto prompts =
      load({.name = "custom", .path = file("{\"prompt\":\"a b\",\"output_tokens\":5}\n\n"), .num_prompts = 1})
          .value();
  EXPECT_EQ(prompts[0].text, "a b");
  EXPECT_EQ(prompts[0].output_tokens, 5);
}

TEST_F(Dataset, BadFilesAreNamed) {
  const auto error = [&](std::string_view name, std::string_view text) {
    return load({.name = std::string(name), .path = file(text), .num_prompts = 1}).error().message;
  };
  EXPECT_THAT(error("sharegpt", "{}"), HasSubstr("a JSON list"));
  EXPECT_THAT(error("sharegpt", "[1]"), HasSubstr("entry 1"));
  EXPECT_THAT(error("sharegpt", "[]"), HasSubstr("no usable prompt"));
  EXPECT_THAT(error("sharegpt", R"([{"conversations":[{},{}]}])"), HasSubstr("each turn must have a \"value\""));
  EXPECT_THAT(error("custom", "{\"prompt\":\"a\"}\n{\"text\":1}"), HasSubstr("entry 2"));
  EXPECT_THAT(error("custom", "{\"prompt\":\"a\",\"output_tokens\":0}"), HasSubstr("output_tokens"));
  EXPECT_THAT(error("hf", ""), HasSubstr("hf is not supported: download the data set"));
  EXPECT_EQ(load({.name = "custom", .path = "nowhere", .num_prompts = 1}).error().code, ErrorCode::not_found);
  EXPECT_THAT(load({.name = "custom", .num_prompts = 1}).error().message, HasSubstr("needs a file"));
}

TEST_F(Dataset, SonnetsShareTheirFirstLines) {
  std::string poem;
  for (int i = 0; i < 40; ++i) poem += fmt::format("line {} of a poem about the sea and the wind\n", i);
  const auto prompts = load({.name = "sonnet",
                             .path = file(poem),
                             .num_prompts = 20,
                             .sonnet_input_len = 200,
                             .sonnet_prefix_len = 80,
                             .sonnet_output_len = 9})
                           .value();
  ASSERT_EQ(prompts.size(), 20U);
  const std::string common = prompts[0].text.substr(0, prompts[0].text.find("line 2 "));
  EXPECT_THAT(common, HasSubstr("line 0 "));
  std::set<std::string> texts;
  for (const Prompt& p : prompts) {
    EXPECT_TRUE(p.text.starts_with(common));
    EXPECT_NEAR(p.input_tokens, 200, 30);
    EXPECT_EQ(p.output_tokens, 9);
    texts.insert(p.text);
  }
  EXPECT_EQ(texts.size(), 20U);
  EXPECT_EQ(load({.name = "sonnet", .path = file(poem), .sonnet_input_len = 50}).error().field,
            "sonnet-input-len");
}

TEST_F(Dataset, TheHubsDataSetsAreRefusedWithAWayOut) {
  const auto refused = load({.name = "hf"});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_THAT(refused.error().message, HasSubstr("download the data set"));
}

}  // namespace
}  // namespace octavo::traffic
