#include "fleet/pick/usage.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

void expect(std::string_view tail, std::int64_t input, std::int64_t output) {
  const Usage usage = token_counts(usage_object(tail));
  EXPECT_EQ(usage.input_tokens, input) << tail;
  EXPECT_EQ(usage.output_tokens, output) << tail;
}

TEST(Usage, IsFoundAtTheEndOfAnAnswer) {
  expect(R"({"choices":[],"usage":{"prompt_tokens":3,"total_tokens":10,"completion_tokens":7}})", 3, 7);
  expect(R"(cut off "usage": {"input_tokens": 3, "output_tokens": 7, "x": {"y": [1]}}, "z": 1})", 3, 7);
  expect(
      "data: {\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":7}}\n\ndata: {\"usage\":null}\n\ndata: "
      "[DONE]\n\n",
      3, 7);
}

TEST(Usage, SaysWhatCameFromACache) {
  EXPECT_EQ(token_counts(
                usage_object(R"({"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":4}}})"))
                .cached_tokens,
            4);
  EXPECT_EQ(token_counts(
                usage_object(R"({"usage":{"input_tokens":9,"cache_read_input_tokens":5,"output_tokens":1}})"))
                .cached_tokens,
            5);
  EXPECT_EQ(token_counts(usage_object(R"({"usage":{"prompt_tokens":9}})")).cached_tokens, -1);
}

TEST(Usage, OrIsNotThere) {
  for (const char* tail :
       {"", "\"usage\"", "\"usage\":", "\"usage\": nul", "\"usage\": {\"prompt_tokens\": 1",
        "\"usage\": {\"prompt_tokens\": -1}", "\"usage\": {\"prompt_tokens\": \"x\"}", "{}"})
    expect(tail, -1, -1);
}

}  // namespace
}  // namespace octavo::fleet
