#include "local/structured_outputs_config.h"

#include <gtest/gtest.h>

namespace octavo {
namespace {

TEST(StructuredOutputsConfig, ReadsVllmsFieldsAndUnknownKeywords) {
  const auto options = parse_structured_outputs_config(
      R"({"backend":"xgrammar","disable_fallback":true,"disable_any_whitespace":true,"unknown_keywords":"refuse",
          "unique_items":"refuse","member_order":"any"})");
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->whitespace, grammar::JsonOptions::Whitespace::none);
  EXPECT_TRUE(options->refuse_unknown);
  EXPECT_TRUE(options->refuse_unique);
  EXPECT_TRUE(options->any_order);
  EXPECT_FALSE(parse_structured_outputs_config(R"({"member_order":"schema"})")->any_order);
  EXPECT_FALSE(parse_structured_outputs_config("{}")->any_order) << "OpenAI's promise";
  EXPECT_FALSE(parse_structured_outputs_config(R"({"unknown_keywords":"ignore"})")->refuse_unknown);
  EXPECT_FALSE(parse_structured_outputs_config("{}")->refuse_unique);
}

TEST(StructuredOutputsConfig, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(parse_structured_outputs_config("[]").error().field, "structured_outputs_config");
  EXPECT_EQ(parse_structured_outputs_config(R"({"unknown_keywords":true})").error().field,
            "unknown_keywords");
  EXPECT_EQ(parse_structured_outputs_config(R"({"unique_items":false})").error().field, "unique_items");
  EXPECT_EQ(parse_structured_outputs_config(R"({"member_order":"random"})").error().field, "member_order");
  EXPECT_EQ(parse_structured_outputs_config(R"({"disable_any_whitespace":1})").error().field,
            "disable_any_whitespace");
  EXPECT_EQ(parse_structured_outputs_config(R"({"whitespace":1})").error().field,
            "structured_outputs_config");
}

}  // namespace
}  // namespace octavo
