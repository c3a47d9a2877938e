#include "local/reasoning_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "local/load_tokenizer.h"

namespace octavo {
namespace {

using testing::HasSubstr;

Result<ReasoningConfig> config_of(std::string_view json) {
  return read_reasoning_config(boost::json::parse(json).as_object());
}

TEST(ReasoningConfig, FieldsAreThoseOfVllm) {
  const auto config =
      config_of(R"({"reasoning_parser": "qwen3", "reasoning_start_str": "<a>", "reasoning_end_str": null})");
  ASSERT_TRUE(config) << config.error().message;
  EXPECT_EQ(config->parser, "qwen3");
  EXPECT_EQ(config->begin, "<a>");
  EXPECT_EQ(config->end, "");
  EXPECT_EQ(config_of(R"({"start": "<a>"})").error().field, "start");
  EXPECT_EQ(config_of(R"({"reasoning_end_str": 1})").error().field, "reasoning_end_str");
}

TEST(ReasoningConfig, TextsAreThoseOfTheParser) {
  const Tokenizer tokenizer = load_tokenizer("models/demo").value();
  const openai::ReasoningRule rule{.begin = tokenizer.id_of("<|im_start|>").value(),
                                   .end = tokenizer.id_of("<|im_end|>").value()};
  const auto check = [&](const ReasoningConfig& config, const openai::ReasoningRule* with) {
    const Result<> done = check_reasoning_config(config, with, tokenizer);
    return done ? std::string() : done.error().field + ": " + done.error().message;
  };
  EXPECT_EQ(check({.begin = "<|im_start|>", .end = "<|im_end|>"}, &rule), "");
  EXPECT_EQ(check({}, nullptr), "");
  EXPECT_THAT(
      check({.end = "Time is up.<|im_end|>"}, &rule),
      HasSubstr(
          R"(reasoning_end_str: "Time is up.<|im_end|>" is not the mark of the reasoning parser, which is "<|im_end|>")"));
  EXPECT_THAT(check({.begin = "<|im_start|>"}, nullptr),
              HasSubstr("reasoning-config: needs a --reasoning-parser"));
}

}  // namespace
}  // namespace octavo
