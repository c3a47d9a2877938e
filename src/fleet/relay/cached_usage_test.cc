#include "fleet/relay/cached_usage.h"

#include <gtest/gtest.h>

namespace octavo::fleet {
namespace {

struct Case {
  const char* before;
  std::int64_t cached;
  const char* after;  // with the number of cached tokens set to 5
};

constexpr Case kCases[] = {
    {R"({"id":"a","usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":8}}})", 8,
     R"({"id":"a","usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":5}}})"},
    {R"({"usage":{"prompt_tokens":8}})", 0,
     R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":5}}})"},
    {R"({"usage":{"input_tokens":1,"cache_read_input_tokens":7,"output_tokens":3}})", 7,
     R"({"usage":{"input_tokens":3,"cache_read_input_tokens":5,"output_tokens":3}})"},
    {R"({"usage":{"input_tokens":8,"input_tokens_details":{"cached_tokens":8},"output_tokens":3}})", 8,
     R"({"usage":{"input_tokens":8,"input_tokens_details":{"cached_tokens":5},"output_tokens":3}})"},
    {R"({"type":"response.completed","response":{"usage":{"input_tokens_details":{"cached_tokens":8}}}})", 8,
     R"({"type":"response.completed","response":{"usage":{"input_tokens_details":{"cached_tokens":5}}}})"},
    {R"({"type":"message_start","message":{"usage":{"input_tokens":0,"cache_read_input_tokens":8}}})", 8,
     R"({"type":"message_start","message":{"usage":{"input_tokens":3,"cache_read_input_tokens":5}}})"},
};

TEST(CachedUsage, IsReadAndReplacedInEachApi) {
  for (const Case& each : kCases) {
    EXPECT_EQ(cached_tokens(each.before), each.cached) << each.before;
    EXPECT_EQ(with_cached_tokens(each.before, 5), each.after);
    const std::string event = "data: " + std::string(each.before) + "\n\n";
    EXPECT_EQ(with_cached_tokens(event, 5), "data: " + std::string(each.after) + "\n\n");
    EXPECT_EQ(with_cached_tokens("event: x\n" + event, 5),
              "event: x\ndata: " + std::string(each.after) + "\n\n");
  }
}

TEST(CachedUsage, ZeroReplacesANumberButIsNotAdded) {
  EXPECT_EQ(
      with_cached_tokens(R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":8}}})", 0),
      R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":{"cached_tokens":0}}})");
  for (const char* text :
       {R"({"usage":{"prompt_tokens":8}})", R"({"usage":{"prompt_tokens":8,"prompt_tokens_details":null}})"})
    EXPECT_EQ(with_cached_tokens(text, 0), text);
}

TEST(CachedUsage, OtherTextsStay) {
  for (const char* text :
       {"", "data: [DONE]\n\n", ": usage\n\n", R"({"usage":null})", R"({"text":"\"usage\""})", R"({"usage":)",
        "data: {\"usage\":null}\n\n", "event: usage\n\n",
        "data: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n"}) {
    EXPECT_EQ(with_cached_tokens(text, 5), text);
    EXPECT_EQ(cached_tokens(text), 0);
  }
}

}  // namespace
}  // namespace octavo::fleet
