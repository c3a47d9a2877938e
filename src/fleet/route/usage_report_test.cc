#include "fleet/route/usage_report.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

TEST(UsageReport, ReadsAnswersAndEvents) {
  const auto whole = read_usage(R"({"choices": [{"text": "\"prompt_tokens\": 9"}], "usage":
      {"prompt_tokens": 12, "total_tokens": 13, "prompt_tokens_details": {"cached_tokens": 8}}})");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->prompt_tokens, 12);
  EXPECT_EQ(whole->cached_tokens, 8);
  const auto event = read_usage("data: {\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n");
  ASSERT_TRUE(event);
  EXPECT_EQ(event->prompt_tokens, 5);
  EXPECT_EQ(event->cached_tokens, 0);
}

TEST(UsageReport, NothingWhereThereIsNone) {
  for (const char* text : {"", "{}", R"({"usage": null})", R"({"prompt_tokens": "12"})", R"("prompt_tokens")",
                           R"("prompt_tokens": 1)"})
    EXPECT_FALSE(read_usage(text)) << text;
}

}  // namespace
}  // namespace octavo::fleet
